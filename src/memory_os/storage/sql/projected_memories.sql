-- The present state of memories, with their text only where it has not been extracted by this extractor yet.
SELECT m.id, m.label, m.status, m.version, m.user_id, m.valid_from, m.valid_to,
       coalesce(m.occurred_at, m.created_at) AS seen,
       CASE WHEN x.memory_id IS NULL THEN m.text END AS text
FROM memories AS m
LEFT JOIN extractions AS x ON x.tenant_id = m.tenant_id AND x.memory_id = m.id
     AND x.extractor = %(extractor)s AND x.extractor_version = %(extractor_version)s
WHERE m.tenant_id = %(tenant_id)s AND m.id = ANY (%(ids)s)
