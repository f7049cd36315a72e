DELETE FROM corrections AS t USING unnest(%(memories)s::uuid[]) AS gone (id)
WHERE t.tenant_id = %(tenant_id)s AND t.memory_id = gone.id RETURNING t.id
