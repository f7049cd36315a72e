-- The mentions of each memory summed for each entity, in the order of both.
SELECT memory_id, entity_id, sum(occurrences)::int AS occurrences, max(confidence) AS confidence
FROM mentions
WHERE tenant_id = %(tenant_id)s AND memory_id >= %(after)s AND (memory_id, entity_id) > (%(after)s, %(after_b)s)
GROUP BY memory_id, entity_id
ORDER BY memory_id, entity_id LIMIT %(page)s
