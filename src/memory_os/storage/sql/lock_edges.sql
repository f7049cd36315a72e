-- Edges that are about to gain, held in the order of their ids as by everybody who holds several.
SELECT id, confidence, co_reference_count FROM edges
WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s::uuid[]) ORDER BY id FOR NO KEY UPDATE
