-- What is there already in a scope for each of some new memories (`n` counts them from 1): the one with the same exact
-- key, those with the same subject and property, and the most similar of those whose sketches are near.
WITH given AS MATERIALIZED (
    SELECT n, decode(key, 'hex') AS key, subject, property, vector::vector AS vector
    FROM unnest(%(keys)s::text[], %(subjects)s::text[], %(properties)s::text[], %(vectors)s::text[])
         WITH ORDINALITY AS rows (key, subject, property, vector, n)
)
SELECT given.n, found.exact, found.similarity, m.*
FROM given
CROSS JOIN LATERAL (
    SELECT id, bool_or(exact) AS exact, max(similarity) AS similarity FROM (
        SELECT e.id, true AS exact, NULL::float8 AS similarity FROM memories AS e
        WHERE e.tenant_id = %(tenant_id)s AND coalesce(e.user_id, '') = %(scope)s AND e.exact_key = given.key
          AND e.status IN ('active', 'disputed')
        UNION ALL
        SELECT p.id, false, NULL FROM memories AS p
        WHERE p.tenant_id = %(tenant_id)s AND p.subject = given.subject AND p.property = given.property
          AND coalesce(p.user_id, '') = %(scope)s AND p.status IN ('active', 'disputed')
        UNION ALL
        SELECT nearest.* FROM (
            SELECT v.memory_id, false, 1 - (v.embedding <=> given.vector) AS similarity
            FROM unnest(%(near_n)s::int[], %(near_ids)s::uuid[]) AS near (n, id)
            JOIN memories AS l
              ON l.tenant_id = %(tenant_id)s AND l.id = near.id AND l.status IN ('active', 'disputed')
            JOIN memory_embeddings AS v
              ON v.tenant_id = %(tenant_id)s AND v.memory_id = near.id AND v.model = %(model)s
            WHERE near.n = given.n
            ORDER BY v.embedding <=> given.vector LIMIT 2 * %(judged)s
        ) AS nearest
    ) AS each_way GROUP BY id
) AS found
JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = found.id
WHERE m.status IN ('active', 'disputed')
ORDER BY given.n, found.exact DESC, found.similarity DESC NULLS LAST
