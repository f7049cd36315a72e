-- Which of these entities are there. They stay until the end of the transaction: an erasure that wants to delete one
-- that nothing names waits, and finds then that something does.
SELECT id FROM entities WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s) ORDER BY id FOR KEY SHARE
