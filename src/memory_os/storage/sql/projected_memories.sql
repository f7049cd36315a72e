-- The present state of memories, with text and title only where this extractor has not been at it yet. A mark that says
-- otherwise (another version, or emptied by a change) also tells that there may be older mentions to remove.
SELECT m.id, m.label, m.status, m.version, m.user_id, m.valid_from, m.valid_to, m.visibility, m.reader_users,
       m.reader_groups,
       coalesce(m.occurred_at, m.created_at) AS seen,
       x.memory_id IS NOT NULL AS marked,
       CASE WHEN x.extractor = %(extractor)s AND x.extractor_version = %(extractor_version)s THEN NULL
            ELSE m.text END AS text,
       CASE WHEN x.extractor = %(extractor)s AND x.extractor_version = %(extractor_version)s THEN NULL
            ELSE m.title END AS title
FROM memories AS m
LEFT JOIN extractions AS x ON x.tenant_id = m.tenant_id AND x.memory_id = m.id
WHERE m.tenant_id = %(tenant_id)s AND m.id = ANY (%(ids)s)
