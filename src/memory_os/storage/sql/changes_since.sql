-- What became of memories after a moment, the oldest first: stored ones and acts, each read in the order of its index. Acts
-- are hidden with the memory that they were done to. `after_id` is that of the last one seen.
SELECT c.kind, c.at, c.id, c.role, c.user_id, c.undone_at, m.id AS memory_id, m.label, m.title, m.text, m.status,
       (SELECT o.id FROM memories AS o WHERE o.tenant_id = %(tenant_id)s AND o.id = c.other_id) AS other_id
FROM (
    (SELECT 'create' AS kind, n.created_at AS at, n.id, NULL AS role, n.user_id, NULL::timestamptz AS undone_at,
            n.id AS memory_id, NULL::uuid AS other_id
     FROM memories AS n
     WHERE n.tenant_id = %(tenant_id)s AND (n.created_at, n.id) > (%(after)s::timestamptz, %(after_id)s::uuid)
     ORDER BY n.created_at, n.id LIMIT %(limit)s)
    UNION ALL
    (SELECT a.kind, a.at, a.id, a.role, a.user_id, a.undone_at, a.memory_id, a.other_id
     FROM memory_acts AS a
     WHERE a.tenant_id = %(tenant_id)s AND (a.at, a.id) > (%(after)s::timestamptz, %(after_id)s::uuid)
     ORDER BY a.at, a.id LIMIT %(limit)s)
) AS c JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = c.memory_id
ORDER BY c.at, c.id
LIMIT %(limit)s
