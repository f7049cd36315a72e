-- Which of the extracted memories are still there at the version that was read; held until the mentions are in.
SELECT m.id FROM memories AS m
JOIN unnest(%(ids)s::uuid[], %(versions)s::bigint[]) AS given (id, version) ON m.id = given.id AND m.version = given.version
WHERE m.tenant_id = %(tenant_id)s
ORDER BY m.id FOR KEY SHARE OF m
