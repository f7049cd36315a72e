-- The entities that the memories which this reader may see name most strongly; those that none names come last. The order
-- is that of `weights.strength`, before it is rounded; among equals the ids decide.
SELECT e.id, e.entity_type, e.declared, count(DISTINCT m.memory_id)::int AS mentions,
       coalesce(sum(m.occurrences), 0)::int AS occurrences, coalesce(max(m.confidence), 0) AS confidence
FROM entities AS e
LEFT JOIN mentions AS m ON m.tenant_id = e.tenant_id AND m.entity_id = e.id
WHERE e.tenant_id = %(tenant_id)s
GROUP BY e.id, e.entity_type, e.declared
ORDER BY coalesce(least(%(cap)s, max(m.confidence) + %(step)s * (sum(m.occurrences) - 1)), 0) DESC, e.id
LIMIT %(limit)s
