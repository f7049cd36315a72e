SELECT memory_id FROM memory_sketches
WHERE tenant_id = %(tenant_id)s AND scope = %(scope)s AND model = %(model)s AND memory_id = ANY (%(ids)s::uuid[])
