SELECT id, text FROM passages WHERE tenant_id = %(tenant_id)s AND embedding_model IS NULL ORDER BY id LIMIT %(batch)s
