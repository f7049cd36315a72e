SELECT id FROM memories
WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s::uuid[]) AND status IN ('active', 'disputed')
ORDER BY id FOR NO KEY UPDATE
