-- Which steps of the graph's paths the canonical rows bear out for this reader: typed edges and links that are still
-- there (links at the asked time), and co-occurrences that a memory which the reader sees is behind: mentions are hidden
-- with their memory. Both ends of each step are looked up apart. Then the contradictions among the candidates.
SELECT 'edge' AS kind, e.id::text AS key, e.co_reference_count
FROM edges AS e WHERE e.tenant_id = %(tenant_id)s AND e.id = ANY (%(edges)s::uuid[])
UNION ALL
SELECT 'link', l.id::text, 0
FROM entity_links AS l
WHERE l.tenant_id = %(tenant_id)s AND l.id = ANY (%(links)s::uuid[])
  AND coalesce(l.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
  AND (%(history)s::boolean OR coalesce(l.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
UNION ALL
SELECT 'pair', p.a::text || ' ' || p.b::text, 0
FROM unnest(%(pairs_a)s::uuid[], %(pairs_b)s::uuid[]) AS p (a, b)
WHERE EXISTS (
    SELECT 1
    FROM mentions AS x JOIN mentions AS y ON y.tenant_id = x.tenant_id AND y.memory_id = x.memory_id
    WHERE x.tenant_id = %(tenant_id)s AND y.tenant_id = %(tenant_id)s AND x.entity_id = p.a AND y.entity_id = p.b)
UNION ALL
SELECT 'contradiction', e.source_memory_id::text || ' ' || e.target_memory_id::text, 0
FROM edges AS e
WHERE e.tenant_id = %(tenant_id)s AND e.type = 'CONTRADICTS'
  AND e.source_memory_id = ANY (%(memories)s::uuid[]) AND e.target_memory_id = ANY (%(memories)s::uuid[])
