-- The memories and passages of one tenant that are nearest to a vector, under the reader's row-level security; vectors have
-- the readers of their record beside them.
-- Most vectors of a large tenant that all of it may read lie in an index (`indexed`); `near` is what that gives, and each
-- of these is measured again with the vector itself. All others are measured one by one: all vectors of a tenant without
-- an index, those that wait for the indexer, the reader's own, and those of a few readers. Each kind of readers is looked
-- for by itself, so that others' private vectors are not even looked at; and with conditions that a policy lets through to
-- an index. A vector that has just been put into the index, and is not marked yet, comes both ways.
-- The "+ 0" keeps an index on the vectors, should there be one, out of the exact scans. OFFSET 0 keeps each look-up after
-- what it looks up, and the distances below the sort, which would otherwise carry the vectors.
-- A memory is passed over that is not in force at the asked time, unless the reader asks for history; a passage, if its
-- source is later.
-- The first columns tell of the index alone: whether the tenant has one, how many it gave, how many of those are in force,
-- up to what is needed, and the least and the greatest distance.
WITH near AS MATERIALIZED (
    SELECT kind, record_id, source_id, distance
    FROM near_vectors(%(tenant_id)s, %(model)s, %(vector)s::vector, %(reach)s)
),
-- The nearest of these that are in force, some more than are asked for, since half precision may confuse their order.
in_force AS MATERIALIZED (
    SELECT n.kind, n.record_id
    FROM (SELECT * FROM near ORDER BY distance) AS n
    CROSS JOIN LATERAL (
        SELECT FROM memories AS m
        WHERE n.kind = 'memory' AND m.tenant_id = %(tenant_id)s AND m.id = n.record_id
          AND coalesce(m.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
          AND (%(history)s::boolean
               OR (m.status IN ('active', 'completed', 'abandoned', 'disputed')
                   AND coalesce(m.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
               OR (m.status IN ('superseded', 'expired')
                   AND m.valid_to > coalesce(%(as_of)s::timestamptz, now())))
        UNION ALL
        SELECT FROM sources AS s
        WHERE n.kind = 'passage' AND s.tenant_id = %(tenant_id)s AND s.id = n.source_id
          AND coalesce(s.source_date, s.created_at) <= coalesce(%(as_of)s::timestamptz, now())
        OFFSET 0
    ) AS seen
    ORDER BY n.distance LIMIT %(limit)s + 10
),
hits AS MATERIALIZED (
    SELECT 'memory' AS type, n.record_id AS id, e.distance
    FROM in_force AS n
    CROSS JOIN LATERAL (
        SELECT (embedding <=> %(vector)s::vector) + 0 AS distance FROM memory_embeddings
        WHERE tenant_id = %(tenant_id)s AND memory_id = n.record_id AND model = %(model)s OFFSET 0
    ) AS e
    WHERE n.kind = 'memory'
    UNION ALL
    SELECT 'passage', n.record_id, e.distance
    FROM in_force AS n
    CROSS JOIN LATERAL (
        SELECT (embedding <=> %(vector)s::vector) + 0 AS distance FROM passage_embeddings
        WHERE tenant_id = %(tenant_id)s AND passage_id = n.record_id AND model = %(model)s OFFSET 0
    ) AS e
    WHERE n.kind = 'passage'
    UNION ALL
    (SELECT 'memory', v.id, v.distance
     FROM (
         SELECT id, distance FROM (
             SELECT memory_id AS id, (embedding <=> %(vector)s::vector) + 0 AS distance FROM memory_embeddings
             WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND visibility = 'tenant' AND NOT indexed
             UNION ALL
             SELECT memory_id, (embedding <=> %(vector)s::vector) + 0 FROM memory_embeddings
             WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND visibility = 'private' AND NOT indexed
               AND user_id = %(user_id)s
             UNION ALL
             SELECT memory_id, (embedding <=> %(vector)s::vector) + 0 FROM memory_embeddings
             WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND visibility = 'restricted' AND NOT indexed
             OFFSET 0
         ) AS measured
         WHERE distance <= 1 - %(floor)s::float8 ORDER BY distance, id
     ) AS v
     CROSS JOIN LATERAL (
         SELECT FROM memories AS m
         WHERE m.tenant_id = %(tenant_id)s AND m.id = v.id
           AND coalesce(m.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
           AND (%(history)s::boolean
                OR (m.status IN ('active', 'completed', 'abandoned', 'disputed')
                    AND coalesce(m.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
                OR (m.status IN ('superseded', 'expired')
                    AND m.valid_to > coalesce(%(as_of)s::timestamptz, now())))
         OFFSET 0
     ) AS seen
     ORDER BY v.distance, v.id LIMIT %(limit)s)
    UNION ALL
    (SELECT 'passage', v.id, v.distance
     FROM (
         SELECT id, source_id, distance FROM (
             SELECT passage_id AS id, source_id, (embedding <=> %(vector)s::vector) + 0 AS distance
             FROM passage_embeddings
             WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND visibility = 'tenant' AND NOT indexed
             UNION ALL
             SELECT passage_id, source_id, (embedding <=> %(vector)s::vector) + 0 FROM passage_embeddings
             WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND visibility = 'private' AND NOT indexed
               AND user_id = %(user_id)s
             UNION ALL
             SELECT passage_id, source_id, (embedding <=> %(vector)s::vector) + 0 FROM passage_embeddings
             WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND visibility = 'restricted' AND NOT indexed
             OFFSET 0
         ) AS measured
         WHERE distance <= 1 - %(floor)s::float8 ORDER BY distance, id
     ) AS v
     CROSS JOIN LATERAL (
         SELECT FROM sources AS s
         WHERE s.tenant_id = %(tenant_id)s AND s.id = v.source_id
           AND coalesce(s.source_date, s.created_at) <= coalesce(%(as_of)s::timestamptz, now())
         OFFSET 0
     ) AS seen
     ORDER BY v.distance, v.id LIMIT %(limit)s)
)
SELECT index.there, index.given, index.shown, index.nearest, index.farthest, best.type, best.id, 1 - best.distance AS similarity
FROM (
    SELECT EXISTS (SELECT FROM vector_partitions WHERE tenant_id = %(tenant_id)s AND model = %(model)s) AS there,
           (SELECT count(*) FROM near) AS given, (SELECT count(*) FROM in_force) AS shown,
           (SELECT min(distance) FROM near) AS nearest, (SELECT max(distance) FROM near) AS farthest
) AS index
LEFT JOIN (
    SELECT type, id, min(distance) AS distance FROM hits WHERE distance <= 1 - %(floor)s::float8
    GROUP BY type, id ORDER BY min(distance), id LIMIT %(limit)s
) AS best ON true
ORDER BY best.distance, best.id
