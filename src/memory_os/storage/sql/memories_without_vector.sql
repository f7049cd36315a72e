SELECT id, title, text FROM memories
WHERE tenant_id = %(tenant_id)s AND embedding_model IS NULL ORDER BY id LIMIT %(batch)s
