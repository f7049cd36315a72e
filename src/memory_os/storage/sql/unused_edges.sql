-- The next edges, by id, that no answer has used since a moment, of some types: what they are worth, and whether a
-- Commitment is at one of their ends.
SELECT e.id, e.type, e.confidence, e.claimed_confidence, e.co_reference_count, e.used_at, e.faded_at,
       EXISTS (SELECT 1 FROM memories AS m
               WHERE m.tenant_id = e.tenant_id AND m.id IN (e.source_memory_id, e.target_memory_id)
                 AND m.label = 'Commitment') AS committed
FROM edges AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id > %(after)s::uuid AND e.used_at <= %(since)s::timestamptz
  AND e.type = ANY (%(types)s::text[])
ORDER BY e.id LIMIT %(batch)s
