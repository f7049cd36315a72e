-- What may say the same as each of some memories, among those of the same user and readers that are live, or that this run
-- has merged away: the one with its exact key, those with its subject and property, and those whose vectors of one model
-- are nearest; with the similarity of the vectors, where both are there. Whether it has merged one away or would, the same
-- ones are found: so the exact key, which only those that are live keep in an index, finds none that have gone.
-- As in search_vectors.sql, most vectors of a large tenant lie in an index, if all of it may read them, and all others are
-- measured one by one; "+ 0" and OFFSET 0 are there for the same reasons. Whether a memory counts is looked up in the
-- order of the distances, until there are enough. The index gives nothing for a vector of another dimension.
WITH given AS MATERIALIZED (
    SELECT m.id, m.visibility, m.user_id, m.reader_users, m.reader_groups, m.subject, m.property,
           decode(g.key, 'hex') AS key, e.embedding
    FROM unnest(%(ids)s::uuid[], %(keys)s::text[]) AS g (id, key)
         JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = g.id
         LEFT JOIN memory_embeddings AS e
         ON e.tenant_id = %(tenant_id)s AND e.memory_id = g.id AND e.model = %(model)s
),
gone AS MATERIALIZED (
    SELECT target_id AS id FROM cycle_actions
    WHERE tenant_id = %(tenant_id)s AND run_id = %(run_id)s AND rule = %(rule)s AND undone_at IS NULL
)
SELECT given.id AS memory_id, found.id AS other_id, 1 - (own.embedding <=> given.embedding) AS similarity
FROM given
CROSS JOIN LATERAL (
    SELECT x.id FROM memories AS x
    WHERE x.tenant_id = %(tenant_id)s AND coalesce(x.user_id, '') = coalesce(given.user_id, '')
      AND x.exact_key = given.key AND x.status IN ('active', 'disputed') AND x.id <> given.id
      AND x.id NOT IN (SELECT id FROM gone)
    UNION
    (SELECT p.id FROM memories AS p
     WHERE p.tenant_id = %(tenant_id)s AND p.subject = given.subject AND p.property = given.property
       AND coalesce(p.user_id, '') = coalesce(given.user_id, '') AND p.visibility = given.visibility
       AND (p.status IN ('active', 'disputed') OR (p.status = 'archived' AND p.id IN (SELECT id FROM gone)))
       AND p.id <> given.id
     ORDER BY p.id DESC LIMIT %(read)s)
    UNION
    (SELECT v.id
     FROM (
         SELECT id, distance FROM (
             SELECT e.memory_id AS id, (e.embedding <=> given.embedding) + 0 AS distance FROM memory_embeddings AS e
             WHERE e.tenant_id = %(tenant_id)s AND e.model = %(model)s AND e.visibility = given.visibility
               AND NOT e.indexed AND coalesce(e.user_id, '') = coalesce(given.user_id, '') AND e.memory_id <> given.id
             UNION ALL
             SELECT n.record_id, n.distance
             FROM near_vectors(
                 %(tenant_id)s, %(model)s,
                 CASE WHEN given.visibility = 'tenant' AND given.embedding IS NOT NULL THEN given.embedding ELSE '[0]' END,
                 %(reach)s) AS n
             WHERE n.kind = 'memory' AND n.record_id <> given.id
             OFFSET 0
         ) AS measured
         WHERE given.embedding IS NOT NULL ORDER BY distance, id
     ) AS v
     CROSS JOIN LATERAL (
         SELECT FROM memories AS m
         WHERE m.tenant_id = %(tenant_id)s AND m.id = v.id AND m.visibility = given.visibility
           AND coalesce(m.user_id, '') = coalesce(given.user_id, '')
           AND m.reader_users @> given.reader_users AND m.reader_users <@ given.reader_users
           AND m.reader_groups @> given.reader_groups AND m.reader_groups <@ given.reader_groups
           AND (m.status IN ('active', 'disputed') OR (m.status = 'archived' AND m.id IN (SELECT id FROM gone)))
         OFFSET 0
     ) AS counts
     ORDER BY v.distance, v.id LIMIT %(read)s)
) AS found
LEFT JOIN LATERAL (
    SELECT e.embedding FROM memory_embeddings AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.memory_id = found.id AND e.model = %(model)s OFFSET 0
) AS own ON true
