-- What is there already in a scope for each of some new memories (`n` counts them from 1): the one with the same exact
-- key, those with the same subject and property, and the most similar of those whose sketches are near.
-- OFFSET 0 keeps each look-up after what it looks up: in a young table the planner takes the readable rows for a handful,
-- and would go through all of them once for each of the given ones.
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
            CROSS JOIN LATERAL (
                SELECT l.id FROM memories AS l
                WHERE l.tenant_id = %(tenant_id)s AND l.id = near.id AND l.status IN ('active', 'disputed') OFFSET 0
            ) AS living
            CROSS JOIN LATERAL (
                SELECT e.memory_id, e.embedding FROM memory_embeddings AS e
                WHERE e.tenant_id = %(tenant_id)s AND e.memory_id = living.id AND e.model = %(model)s OFFSET 0
            ) AS v
            WHERE near.n = given.n
            ORDER BY v.embedding <=> given.vector LIMIT %(read)s
        ) AS nearest
    ) AS each_way GROUP BY id
) AS found
CROSS JOIN LATERAL (
    SELECT * FROM memories AS x
    WHERE x.tenant_id = %(tenant_id)s AND x.id = found.id AND x.status IN ('active', 'disputed') OFFSET 0
) AS m
ORDER BY given.n, found.exact DESC, found.similarity DESC NULLS LAST
