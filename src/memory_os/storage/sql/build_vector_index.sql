SELECT build_vector_index(%(tenant_id)s, %(model)s, %(dimension)s, %(memory_mb)s) AS rows
