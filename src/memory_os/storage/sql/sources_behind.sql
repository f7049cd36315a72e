-- The living evidence of a memory, and of the memories that it was extracted from or that support it, one step away, newest
-- first. Each has its source and its memory under their policies. A memory that supports it and does not hold any more
-- lends it nothing.
WITH claims AS MATERIALIZED (
    SELECT DISTINCT ON (id) id, edge_id, type, direction, confidence
    FROM (
        SELECT %(memory)s::uuid AS id, NULL::uuid AS edge_id, NULL AS type, NULL AS direction, NULL::float8 AS confidence
        UNION ALL
        SELECT e.target_memory_id, e.id, e.type, 'out', e.confidence FROM edges AS e
        WHERE e.tenant_id = %(tenant_id)s AND e.source_memory_id = %(memory)s::uuid AND e.type = 'EXTRACTED_FROM'
          AND e.target_memory_id IS NOT NULL
        UNION ALL
        SELECT e.source_memory_id, e.id, e.type, 'in', e.confidence FROM edges AS e
        WHERE e.tenant_id = %(tenant_id)s AND e.target_memory_id = %(memory)s::uuid AND e.type = 'SUPPORTS'
          AND e.source_memory_id IS NOT NULL
    ) AS steps
    ORDER BY id, edge_id NULLS FIRST
)
SELECT v.id, v.at, v.support, v.confidence, v.memory_id, s.id AS source_id, s.kind, s.title, s.uri,
       coalesce(s.source_date, s.created_at) AS date, v.passage_id,
       substring(p.text FROM v.quote_start + 1 FOR v.quote_end - v.quote_start) AS quote,
       c.edge_id, c.type, c.direction, c.confidence AS edge_confidence
FROM claims AS c
     JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = c.id
     JOIN evidence AS v ON v.tenant_id = %(tenant_id)s AND v.memory_id = c.id
     JOIN sources AS s ON s.tenant_id = %(tenant_id)s AND s.id = v.living_source_id
     LEFT JOIN passages AS p ON p.tenant_id = %(tenant_id)s AND p.id = v.passage_id
WHERE v.withdrawn_at IS NULL
  AND (c.edge_id IS NULL OR m.status IN ('active', 'completed', 'abandoned', 'disputed'))
  AND (%(before)s::timestamptz IS NULL OR (v.at, v.id) < (%(before)s::timestamptz, %(before_id)s::uuid))
ORDER BY v.at DESC, v.id DESC
LIMIT %(limit)s
