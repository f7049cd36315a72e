-- The versions of memories, which are held in the order of their ids.
SELECT id, version FROM memories WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s::uuid[]) ORDER BY id FOR UPDATE
