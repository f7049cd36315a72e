DELETE FROM memories AS m USING unnest(%(memories)s::uuid[]) AS gone (id)
WHERE m.tenant_id = %(tenant_id)s AND m.id = gone.id
