-- Edges that answers have used often enough, and between two moments if these are given: the most used first.
SELECT e.id, e.confidence, e.co_reference_count, e.used_at,
       e.source_memory_id, e.source_entity_id, e.target_memory_id, e.target_entity_id
FROM edges AS e
WHERE e.tenant_id = %(tenant_id)s AND e.co_reference_count >= %(references)s AND e.confidence >= %(confidence)s
  AND (%(since)s::timestamptz IS NULL OR e.used_at BETWEEN %(since)s::timestamptz AND %(until)s::timestamptz)
ORDER BY e.co_reference_count DESC, e.confidence DESC, e.id LIMIT %(most)s
