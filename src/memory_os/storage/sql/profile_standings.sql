-- Of some audiences: the newest version of their profile, and the first memory that is theirs. Users and all of the tenant
-- (null) are looked up apart, since no index serves "is not distinct from".
SELECT a.place, p.id, p.version, p.content,
       (SELECT m.id FROM memories AS m WHERE m.tenant_id = %(tenant_id)s AND m.user_id = a.user_id
        ORDER BY m.created_at, m.id LIMIT 1) AS first_memory
FROM unnest(%(users)s::text[]) WITH ORDINALITY AS a (user_id, place)
LEFT JOIN LATERAL (
    SELECT t.id, t.version, t.content FROM (
        (SELECT o.id, o.version, o.content FROM profiles AS o
         WHERE o.tenant_id = %(tenant_id)s AND o.user_id = a.user_id ORDER BY o.version DESC LIMIT 1)
        UNION ALL
        (SELECT o.id, o.version, o.content FROM profiles AS o
         WHERE a.user_id IS NULL AND o.tenant_id = %(tenant_id)s AND o.user_id IS NULL ORDER BY o.version DESC LIMIT 1)
    ) AS t
) AS p ON true
ORDER BY a.place
