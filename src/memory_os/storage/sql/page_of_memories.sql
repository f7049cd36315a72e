SELECT id, label, status, version, user_id, valid_from, valid_to FROM memories
WHERE tenant_id = %(tenant_id)s AND id > %(after)s AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
ORDER BY id LIMIT %(page)s
