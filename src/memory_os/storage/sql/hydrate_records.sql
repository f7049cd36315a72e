-- What this reader may see of these records, in force at the asked time unless history is asked for. Everything that is
-- shown of a record or of a path passes through here, under the policies of its table. A source is there from its own
-- date on, or else from when it was recorded, and so are its passages.
-- What took the place of a memory is named: where its label lets nothing supersede it, what a correction put there instead,
-- and of one that was archived as a duplicate, the one that stayed.
-- A derived entity is called what a memory that the reader sees calls it, and when an entity was last named is not told
-- here: its row says that of hidden memories, too.
SELECT 'memory' AS type, m.id, m.label, m.title, m.text, coalesce(m.occurred_at, m.created_at) AS date, m.status,
       m.valid_from, m.valid_to, m.confidence, true AS declared,
       coalesce(
           (SELECT e.source_memory_id
            FROM edges AS e JOIN memories AS r ON r.tenant_id = e.tenant_id AND r.id = e.source_memory_id
            WHERE e.tenant_id = %(tenant_id)s AND e.target_memory_id = m.id AND e.type = 'SUPERSEDES'
            ORDER BY e.created_at DESC LIMIT 1),
           CASE m.status
           WHEN 'retracted' THEN
               (SELECT c.result_id
                FROM corrections AS c
                     JOIN memory_acts AS a ON a.tenant_id = c.tenant_id AND a.id = c.act_id AND a.undone_at IS NULL
                     JOIN memories AS r ON r.tenant_id = c.tenant_id AND r.id = c.result_id
                WHERE c.tenant_id = %(tenant_id)s AND c.memory_id = m.id
                ORDER BY c.decided_at DESC LIMIT 1)
           WHEN 'archived' THEN
               (SELECT e.target_memory_id
                FROM edges AS e JOIN memories AS r ON r.tenant_id = e.tenant_id AND r.id = e.target_memory_id
                WHERE e.tenant_id = %(tenant_id)s AND e.source_memory_id = m.id AND e.type = 'DUPLICATES'
                ORDER BY e.created_at DESC LIMIT 1)
           END) AS superseded_by
FROM memories AS m
WHERE m.tenant_id = %(tenant_id)s AND m.id = ANY (%(memories)s::uuid[])
  AND coalesce(m.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
  AND (%(history)s::boolean
       OR (m.status IN ('active', 'completed', 'abandoned', 'disputed')
           AND coalesce(m.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
       OR (m.status IN ('superseded', 'expired') AND m.valid_to > coalesce(%(as_of)s::timestamptz, now())))
UNION ALL
SELECT 'observation', o.id, NULL, o.title, o.summary, o.created_at, o.status, NULL, NULL, o.confidence, true, NULL
FROM observations AS o
WHERE o.tenant_id = %(tenant_id)s AND o.id = ANY (%(records)s::uuid[]) AND (%(history)s::boolean OR o.status = 'active')
UNION ALL
SELECT 'procedure', p.id, NULL, p.title, p.summary, p.created_at, p.status, NULL, NULL, p.confidence, true, NULL
FROM procedures AS p
WHERE p.tenant_id = %(tenant_id)s AND p.id = ANY (%(records)s::uuid[]) AND (%(history)s::boolean OR p.status = 'active')
UNION ALL
SELECT 'outcome', o.id, NULL, o.title, o.summary, o.created_at, o.status, NULL, NULL, o.confidence, true, NULL
FROM outcomes AS o
WHERE o.tenant_id = %(tenant_id)s AND o.id = ANY (%(records)s::uuid[]) AND (%(history)s::boolean OR o.status = 'active')
UNION ALL
SELECT 'entity', e.id, e.entity_type,
       CASE WHEN e.declared THEN e.name ELSE
         coalesce((SELECT m.name FROM mentions AS m WHERE m.tenant_id = e.tenant_id AND m.entity_id = e.id
                   ORDER BY m.confidence DESC LIMIT 1), e.canonical_name) END,
       coalesce(e.summary, ''), e.created_at, e.status,
       NULL, NULL, e.confidence, e.declared, NULL
FROM entities AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id = ANY (%(entities)s::uuid[]) AND (%(history)s::boolean OR e.status = 'active')
UNION ALL
SELECT 'passage', p.id, s.kind, s.title, p.text, coalesce(s.source_date, s.created_at), 'active', NULL, NULL, 1.0, true, NULL
FROM (
    SELECT id, source_id, text FROM passages
    WHERE tenant_id = %(tenant_id)s AND id = ANY (%(records)s::uuid[])
    OFFSET 0  -- by their key: all passages of their sources may be many
) AS p
     JOIN sources AS s ON s.id = p.source_id
WHERE s.tenant_id = %(tenant_id)s AND coalesce(s.source_date, s.created_at) <= coalesce(%(as_of)s::timestamptz, now())
UNION ALL
SELECT 'source', s.id, s.kind, s.title, concat_ws(', ', s.author, s.uri), coalesce(s.source_date, s.created_at), 'active',
       NULL, NULL, 1.0, true, NULL
FROM sources AS s
WHERE s.tenant_id = %(tenant_id)s AND s.id = ANY (%(records)s::uuid[])
  AND coalesce(s.source_date, s.created_at) <= coalesce(%(as_of)s::timestamptz, now())
