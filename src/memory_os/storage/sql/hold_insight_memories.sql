-- Memories that candidates are about to be made of, held as they are until the end of the transaction.
SELECT id, version FROM memories WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s::uuid[])
ORDER BY id FOR SHARE
