-- All vectors of one tenant measured one by one, whether they lie in the index or not: for a question about a time at which
-- hardly any record near to it was in force, so that the index would have to be walked too far.
-- The "+ 0" keeps an index on the vectors, should there be one, out of it: an approximate scan under a filter loses hits.
-- OFFSET 0 keeps the distance below the sort, which would otherwise carry the vectors (15 MB for 10,000 rows).
-- A memory is passed over that is not in force at the asked time, unless the reader asks for history; a passage, if its
-- source is later. Each kind is sorted and cut by itself, so that either plan is what it is without the other.
SELECT hits.type, hits.id, 1 - hits.distance AS similarity
FROM (
    (SELECT 'memory' AS type, v.id, v.distance
     FROM (
         SELECT memory_id AS id, (embedding <=> %(vector)s::vector) + 0 AS distance
         FROM memory_embeddings
         WHERE tenant_id = %(tenant_id)s AND model = %(model)s
         OFFSET 0
     ) AS v
          JOIN memories AS m ON m.id = v.id
     WHERE m.tenant_id = %(tenant_id)s AND v.distance <= 1 - %(floor)s::float8
       AND coalesce(m.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
       AND (%(history)s::boolean
            OR (m.status IN ('active', 'completed', 'abandoned', 'disputed')
                AND coalesce(m.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
            OR (m.status IN ('superseded', 'expired')
                AND m.valid_to > coalesce(%(as_of)s::timestamptz, now())))
     ORDER BY v.distance, v.id LIMIT %(limit)s)
    UNION ALL
    (SELECT 'passage', v.id, v.distance
     FROM (
         SELECT passage_id AS id, source_id, (embedding <=> %(vector)s::vector) + 0 AS distance
         FROM passage_embeddings
         WHERE tenant_id = %(tenant_id)s AND model = %(model)s
         OFFSET 0
     ) AS v
          JOIN sources AS s ON s.id = v.source_id
     WHERE s.tenant_id = %(tenant_id)s AND v.distance <= 1 - %(floor)s::float8
       AND coalesce(s.source_date, s.created_at) <= coalesce(%(as_of)s::timestamptz, now())
     ORDER BY v.distance, v.id LIMIT %(limit)s)
) AS hits
ORDER BY hits.distance, hits.id
LIMIT %(limit)s
