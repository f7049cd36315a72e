-- What Insights may be made of among these ends of edges, with its domain and its readers: memories that hold, but for
-- Insights that cycles made, and declared entities. A derived entity is known to those alone who read its name somewhere.
SELECT 'memory' AS kind, m.id, m.layer AS domain, m.visibility, m.user_id, m.reader_users, m.reader_groups
FROM memories AS m
WHERE m.tenant_id = %(tenant_id)s AND m.id = ANY (%(memories)s::uuid[]) AND m.status = ANY (%(statuses)s::text[])
  AND m.origin IS DISTINCT FROM %(origin)s
UNION ALL
SELECT 'entity', e.id, e.entity_type, e.visibility, e.user_id, e.reader_users, e.reader_groups
FROM entities AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id = ANY (%(entities)s::uuid[]) AND e.declared AND e.status = 'active'
