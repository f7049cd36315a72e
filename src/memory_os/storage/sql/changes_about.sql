-- As `changes_since`, of the memories alone that an edge, a link or a mention ties to an entity: these first, and then what
-- was done to each.
WITH tied AS MATERIALIZED (
    SELECT n.memory_id AS id FROM mentions AS n WHERE n.tenant_id = %(tenant_id)s AND n.entity_id = %(entity)s::uuid
    UNION
    SELECT e.target_memory_id FROM edges AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.source_entity_id = %(entity)s::uuid AND e.target_memory_id IS NOT NULL
    UNION
    SELECT e.source_memory_id FROM edges AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.target_entity_id = %(entity)s::uuid AND e.source_memory_id IS NOT NULL
    UNION
    SELECT l.target_memory_id FROM entity_links AS l
    WHERE l.tenant_id = %(tenant_id)s AND l.entity_id = %(entity)s::uuid AND l.target_memory_id IS NOT NULL
),
seen AS MATERIALIZED (
    SELECT m.id, m.created_at, m.user_id FROM tied JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = tied.id
),
page AS (
    SELECT * FROM (
        SELECT 'create' AS kind, s.created_at AS at, s.id, NULL AS role, s.user_id, NULL::timestamptz AS undone_at,
               s.id AS memory_id, NULL::uuid AS other_id
        FROM seen AS s
        UNION ALL
        SELECT a.kind, a.at, a.id, a.role, a.user_id, a.undone_at, a.memory_id, a.other_id
        FROM seen AS s JOIN memory_acts AS a ON a.tenant_id = %(tenant_id)s AND a.memory_id = s.id
        WHERE a.at >= %(after)s::timestamptz
    ) AS changes
    WHERE (at, id) > (%(after)s::timestamptz, %(after_id)s::uuid)
    ORDER BY at, id
    LIMIT %(limit)s
)
SELECT c.kind, c.at, c.id, c.role, c.user_id, c.undone_at, m.id AS memory_id, m.label, m.title, m.text, m.status,
       (SELECT o.id FROM memories AS o WHERE o.tenant_id = %(tenant_id)s AND o.id = c.other_id) AS other_id
FROM page AS c JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = c.memory_id
ORDER BY c.at, c.id
