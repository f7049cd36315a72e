-- Which steps of the graph's paths held at a moment of the record, as far as the rows tell: typed edges and links that were
-- stored by then, links within their windows, and co-occurrences in a memory that was there and said then what it says now.
-- A window that was narrowed since tells too little of then, so that its link is taken for what it is now. Then the
-- contradictions among the candidates. What was moved since is left out by who asks: see `acts_since`.
SELECT 'edge' AS kind, e.id AS id, e.id::text AS key, e.co_reference_count
FROM edges AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id = ANY (%(edges)s::uuid[]) AND e.created_at <= %(believed_at)s::timestamptz
UNION ALL
SELECT 'link', l.id, l.id::text, 0
FROM entity_links AS l
WHERE l.tenant_id = %(tenant_id)s AND l.id = ANY (%(links)s::uuid[]) AND l.created_at <= %(believed_at)s::timestamptz
  AND coalesce(l.valid_from <= %(as_of)s::timestamptz, true)
  AND (%(history)s::boolean OR coalesce(l.valid_to > %(as_of)s::timestamptz, true))
UNION ALL
SELECT 'pair', NULL, p.a::text || ' ' || p.b::text, 0
FROM unnest(%(pairs_a)s::uuid[], %(pairs_b)s::uuid[]) AS p (a, b)
WHERE EXISTS (
    SELECT 1
    FROM mentions AS x JOIN mentions AS y ON y.tenant_id = x.tenant_id AND y.memory_id = x.memory_id
         JOIN memories AS m ON m.tenant_id = x.tenant_id AND m.id = x.memory_id
    WHERE x.tenant_id = %(tenant_id)s AND y.tenant_id = %(tenant_id)s AND x.entity_id = p.a AND y.entity_id = p.b
      AND m.created_at <= %(believed_at)s::timestamptz
      AND NOT EXISTS (SELECT 1 FROM memory_acts AS c
                      WHERE c.tenant_id = %(tenant_id)s AND c.memory_id = m.id AND c.kind = 'change'
                        AND c.at > %(believed_at)s::timestamptz AND jsonb_exists(c.detail -> 'before', 'text')))
UNION ALL
SELECT 'contradiction', e.id, e.source_memory_id::text || ' ' || e.target_memory_id::text, 0
FROM edges AS e
WHERE e.tenant_id = %(tenant_id)s AND e.type = 'CONTRADICTS' AND e.created_at <= %(believed_at)s::timestamptz
  AND e.source_memory_id = ANY (%(memories)s::uuid[]) AND e.target_memory_id = ANY (%(memories)s::uuid[])
