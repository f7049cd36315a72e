-- How many mentions of each entity this reader sees, the limit at most: those of hidden memories are hidden with them.
SELECT e.id, (
    SELECT count(*)
    FROM (
        SELECT 1 FROM mentions AS m WHERE m.tenant_id = %(tenant_id)s AND m.entity_id = e.id LIMIT %(limit)s
    ) AS seen
)::int AS mentions
FROM unnest(%(entities)s::uuid[]) AS e (id)
