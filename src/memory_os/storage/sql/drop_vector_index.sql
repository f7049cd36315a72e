SELECT drop_vector_index(%(tenant_id)s) AS dropped
