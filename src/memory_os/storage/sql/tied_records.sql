-- The records that something ties to an entity or a memory, newest first, each with its ties: typed edges, links of entities
-- and mentions. Every branch begins at one node and looks up by key; records are looked up one by one, under the policies
-- of their tables, and a tie to what the reader does not see leads nowhere. The names of entities follow `hydrate_records`;
-- the date of one is that of its newest tie, since its row may tell of hidden memories.
-- What is in force follows `hydrate_records`, too; links hold at the asked time. `direction` is as seen from the node.
WITH ties AS MATERIALIZED (
    SELECT 'edge' AS kind, e.id, e.type, 'out' AS direction, e.confidence, e.created_at,
           CASE WHEN e.target_memory_id IS NULL THEN 'entity' ELSE 'memory' END AS record_type,
           coalesce(e.target_memory_id, e.target_entity_id) AS record_id
    FROM edges AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.source_entity_id = %(entity)s::uuid AND e.type = ANY (%(types_out)s::text[])
    UNION ALL
    SELECT 'edge', e.id, e.type, 'out', e.confidence, e.created_at,
           CASE WHEN e.target_memory_id IS NULL THEN 'entity' ELSE 'memory' END,
           coalesce(e.target_memory_id, e.target_entity_id)
    FROM edges AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.source_memory_id = %(memory)s::uuid AND e.type = ANY (%(types_out)s::text[])
    UNION ALL
    SELECT 'edge', e.id, e.type, 'in', e.confidence, e.created_at,
           CASE WHEN e.source_memory_id IS NULL THEN 'entity' ELSE 'memory' END,
           coalesce(e.source_memory_id, e.source_entity_id)
    FROM edges AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.target_entity_id = %(entity)s::uuid AND e.type = ANY (%(types_in)s::text[])
    UNION ALL
    SELECT 'edge', e.id, e.type, 'in', e.confidence, e.created_at,
           CASE WHEN e.source_memory_id IS NULL THEN 'entity' ELSE 'memory' END,
           coalesce(e.source_memory_id, e.source_entity_id)
    FROM edges AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.target_memory_id = %(memory)s::uuid AND e.type = ANY (%(types_in)s::text[])
    UNION ALL
    SELECT 'link', l.id, l.relationship, 'out', l.confidence, l.created_at, l.layer, l.target_id
    FROM entity_links AS l
    WHERE l.tenant_id = %(tenant_id)s AND l.entity_id = %(entity)s::uuid AND %(links)s::boolean
      AND coalesce(l.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
      AND (%(history)s::boolean OR coalesce(l.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
    UNION ALL
    SELECT 'link', l.id, l.relationship, 'in', l.confidence, l.created_at, 'entity', l.entity_id
    FROM entity_links AS l
    WHERE l.tenant_id = %(tenant_id)s AND l.target_entity_id = %(entity)s::uuid AND %(links)s::boolean
      AND coalesce(l.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
      AND (%(history)s::boolean OR coalesce(l.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
    UNION ALL
    SELECT 'mention', NULL, 'MENTIONS', 'in', n.confidence, NULL, 'memory', n.memory_id
    FROM mentions AS n
    WHERE n.tenant_id = %(tenant_id)s AND n.entity_id = %(entity)s::uuid AND %(mentions)s::boolean
),
found AS MATERIALIZED (SELECT record_type, record_id, max(created_at) AS tied FROM ties GROUP BY record_type, record_id),
records AS (
    SELECT 'memory' AS type, m.id, m.label, m.title, m.text, coalesce(m.occurred_at, m.created_at) AS date, m.status,
           m.valid_from, m.valid_to, m.confidence, m.user_id
    FROM found AS f JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = f.record_id
    WHERE f.record_type = 'memory' AND (%(labels)s::text[] IS NULL OR m.label = ANY (%(labels)s::text[]))
      AND (%(statuses)s::text[] IS NULL OR m.status = ANY (%(statuses)s::text[]))
      AND coalesce(m.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
      AND (%(history)s::boolean
           OR (m.status IN ('active', 'completed', 'abandoned', 'disputed')
               AND coalesce(m.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
           OR (m.status IN ('superseded', 'expired') AND m.valid_to > coalesce(%(as_of)s::timestamptz, now())))
    UNION ALL
    SELECT 'entity', e.id, e.entity_type,
           CASE WHEN e.declared THEN e.name ELSE
             coalesce((SELECT n.name FROM mentions AS n WHERE n.tenant_id = e.tenant_id AND n.entity_id = e.id
                       ORDER BY n.confidence DESC LIMIT 1), e.canonical_name) END,
           coalesce(e.summary, ''), f.tied, e.status, NULL, NULL, e.confidence, NULL
    FROM found AS f JOIN entities AS e ON e.tenant_id = %(tenant_id)s AND e.id = f.record_id
    WHERE f.record_type = 'entity' AND %(labels)s::text[] IS NULL AND (%(history)s::boolean OR e.status = 'active')
    UNION ALL
    SELECT 'observation', o.id, NULL, o.title, o.summary, o.created_at, o.status, NULL, NULL, o.confidence, NULL
    FROM found AS f JOIN observations AS o ON o.tenant_id = %(tenant_id)s AND o.id = f.record_id
    WHERE f.record_type = 'observation' AND %(labels)s::text[] IS NULL AND (%(history)s::boolean OR o.status = 'active')
    UNION ALL
    SELECT 'procedure', p.id, NULL, p.title, p.summary, p.created_at, p.status, NULL, NULL, p.confidence, NULL
    FROM found AS f JOIN procedures AS p ON p.tenant_id = %(tenant_id)s AND p.id = f.record_id
    WHERE f.record_type = 'procedure' AND %(labels)s::text[] IS NULL AND (%(history)s::boolean OR p.status = 'active')
    UNION ALL
    SELECT 'outcome', o.id, NULL, o.title, o.summary, o.created_at, o.status, NULL, NULL, o.confidence, NULL
    FROM found AS f JOIN outcomes AS o ON o.tenant_id = %(tenant_id)s AND o.id = f.record_id
    WHERE f.record_type = 'outcome' AND %(labels)s::text[] IS NULL AND (%(history)s::boolean OR o.status = 'active')
    UNION ALL
    SELECT 'source', s.id, s.kind, s.title, concat_ws(', ', s.author, s.uri), coalesce(s.source_date, s.created_at), 'active',
           NULL, NULL, 1.0, NULL
    FROM found AS f JOIN sources AS s ON s.tenant_id = %(tenant_id)s AND s.id = f.record_id
    WHERE f.record_type = 'source' AND %(labels)s::text[] IS NULL
      AND coalesce(s.source_date, s.created_at) <= coalesce(%(as_of)s::timestamptz, now())
),
page AS (
    SELECT * FROM records AS r
    WHERE %(before)s::timestamptz IS NULL OR (r.date, r.id) < (%(before)s::timestamptz, %(before_id)s::uuid)
    ORDER BY r.date DESC, r.id DESC
    LIMIT %(limit)s
)
SELECT p.*,
       (SELECT jsonb_agg(jsonb_build_object('kind', t.kind, 'id', t.id, 'type', t.type, 'direction', t.direction,
                                            'confidence', t.confidence)
                         ORDER BY t.kind, t.type, t.direction, t.id)
        FROM ties AS t WHERE t.record_type = p.type AND t.record_id = p.id) AS why
FROM page AS p
ORDER BY p.date DESC, p.id DESC
