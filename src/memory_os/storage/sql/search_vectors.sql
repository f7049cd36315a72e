-- The memories of one tenant that are nearest to a vector, by an exact scan under the reader's row-level security.
-- The tenant is given beside the policy: it prunes the partitions, and the planner knows how many rows it has. The
-- "+ 0" keeps an index on the vectors, should there be one, out of it: an approximate scan under a filter loses hits.
-- A memory is passed over that is not in force at the asked time, unless the reader asks for history.
SELECT id, 1 - distance AS similarity
FROM (
    SELECT v.memory_id AS id, (v.embedding <=> %(vector)s::vector) + 0 AS distance
    FROM memory_embeddings AS v
         JOIN memories AS m ON m.tenant_id = v.tenant_id AND m.id = v.memory_id
    WHERE v.tenant_id = %(tenant_id)s AND m.tenant_id = %(tenant_id)s AND v.model = %(model)s
      AND coalesce(m.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
      AND (%(history)s::boolean
           OR (m.status IN ('active', 'completed', 'abandoned', 'disputed')
               AND coalesce(m.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
           OR (m.status IN ('superseded', 'expired')
               AND m.valid_to > coalesce(%(as_of)s::timestamptz, now())))
    ORDER BY distance, v.memory_id
    LIMIT %(limit)s
) AS nearest
WHERE 1 - distance >= %(floor)s
