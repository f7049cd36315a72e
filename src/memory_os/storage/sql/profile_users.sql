-- The next users, by a digest of theirs, who have memories or a profile. The digest is where a run stands between two
-- batches: a name would stay there when the user is erased meanwhile. Names are found by steps over the index.
WITH RECURSIVE owners AS (
    (SELECT user_id FROM memories WHERE tenant_id = %(tenant_id)s AND user_id IS NOT NULL ORDER BY user_id LIMIT 1)
    UNION ALL
    SELECT (SELECT m.user_id FROM memories AS m
            WHERE m.tenant_id = %(tenant_id)s AND m.user_id > o.user_id ORDER BY m.user_id LIMIT 1)
    FROM owners AS o WHERE o.user_id IS NOT NULL
),
described AS (
    (SELECT user_id FROM profiles WHERE tenant_id = %(tenant_id)s AND user_id IS NOT NULL ORDER BY user_id LIMIT 1)
    UNION ALL
    SELECT (SELECT p.user_id FROM profiles AS p
            WHERE p.tenant_id = %(tenant_id)s AND p.user_id > d.user_id ORDER BY p.user_id LIMIT 1)
    FROM described AS d WHERE d.user_id IS NOT NULL
),
users AS (
    SELECT u.user_id, md5(%(tenant_id)s::text || '/' || u.user_id)::uuid AS digest
    FROM (SELECT user_id FROM owners UNION SELECT user_id FROM described) AS u WHERE u.user_id IS NOT NULL
)
SELECT user_id, digest FROM users WHERE digest > %(after)s::uuid ORDER BY digest LIMIT %(batch)s
