-- How far graphs can be relied on: doubt, the newest comparison that was done, whether a rebuild has replaced the graph
-- since, and the jobs that are under way. Of one tenant or all that the reader sees; those in doubt first.
SELECT t.tenant_id, s.doubt, s.doubted_at, s.verified_at, v.id AS compared_by, v.finished_at AS compared_at,
       coalesce(v.missing, 0) AS missing, coalesce(v.extra, 0) AS extra, coalesce(v.differing, 0) AS differing,
       coalesce(v.repaired, 0) AS repaired, coalesce(v.waiting, 0) AS waiting, coalesce(v.dead, 0) AS dead, v.damage,
       EXISTS (
           SELECT 1 FROM graph_rebuilds AS d
           WHERE d.tenant_id = t.tenant_id AND d.status = 'done' AND d.user_id IS NULL
             AND d.finished_at > v.finished_at
       ) AS rebuilt_since,
       r.id AS rebuilding, l.id AS comparing, coalesce(l.repair, false) AS repairing, count(*) OVER () AS graphs
FROM tenants AS t
LEFT JOIN graph_states AS s ON s.tenant_id = t.tenant_id
LEFT JOIN LATERAL (
    SELECT * FROM graph_verifications AS g
    WHERE g.tenant_id = t.tenant_id AND g.status = 'done' ORDER BY g.created_at DESC, g.id DESC LIMIT 1
) AS v ON true
LEFT JOIN graph_rebuilds AS r
    ON r.tenant_id = t.tenant_id AND r.status IN ('pending', 'running') AND r.user_id IS NULL
LEFT JOIN graph_verifications AS l ON l.tenant_id = t.tenant_id AND l.status IN ('pending', 'running')
WHERE (%(tenant_id)s::uuid IS NULL OR t.tenant_id = %(tenant_id)s)
  AND (NOT %(wanting)s OR s.doubt IS NOT NULL OR v.damage IS NOT NULL
       OR v.missing + v.extra + v.differing > v.repaired)
ORDER BY s.doubted_at, t.tenant_id LIMIT %(limit)s
