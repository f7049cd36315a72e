-- What is there already in a scope for each of some new memories (`n` counts them from 1): the one with the same exact
-- key, those with the same subject and property, and the nearest by their vectors. Nearness is read from the sketches
-- first, whose distance follows the angle; the vectors of the few that are left give the similarity.
WITH given AS MATERIALIZED (
    SELECT n, decode(key, 'hex') AS key, subject, property, vector::vector AS vector,
           binary_quantize(vector::vector)::varbit AS sketch
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
        SELECT near.memory_id, false, 1 - (v.embedding <=> given.vector)
        FROM (
            SELECT s.memory_id FROM memory_sketches AS s
            WHERE s.tenant_id = %(tenant_id)s AND s.scope = %(scope)s AND s.model = %(model)s
            ORDER BY hamming_distance(s.sketch, given.sketch) LIMIT %(nearest)s
        ) AS near
        JOIN memory_embeddings AS v
          ON v.tenant_id = %(tenant_id)s AND v.memory_id = near.memory_id AND v.model = %(model)s
        WHERE given.vector IS NOT NULL
    ) AS each_way GROUP BY id
) AS found
JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = found.id
WHERE m.status IN ('active', 'disputed')
ORDER BY given.n, found.exact DESC, found.similarity DESC NULLS LAST
