-- Derived entities that no memory names any more, held until the end of the transaction: whoever is just tying an edge
-- to one of them is waited for, and the next statement sees that edge.
SELECT id FROM entities
WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s) AND NOT declared AND mention_records = 0
ORDER BY id FOR UPDATE
