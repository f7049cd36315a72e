SELECT memory_id, entity_id, sum(occurrences)::int AS occurrences, max(confidence) AS confidence
FROM mentions WHERE tenant_id = %(tenant_id)s AND memory_id = ANY (%(ids)s)
GROUP BY memory_id, entity_id
