-- What was made of memories, table by table. It would go with them, but nobody could say then how much it was.
WITH gone AS MATERIALIZED (SELECT id FROM unnest(%(memories)s::uuid[]) AS given (id)),
vectors AS (
    DELETE FROM memory_embeddings AS t USING gone
    WHERE t.tenant_id = %(tenant_id)s AND t.memory_id = gone.id RETURNING 1
),
tokens AS (
    DELETE FROM token_vectors AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.memory_id = gone.id RETURNING 1
),
named AS (
    DELETE FROM mentions AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.memory_id = gone.id RETURNING 1
),
extracted AS (
    DELETE FROM extractions AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.memory_id = gone.id RETURNING 1
),
tied AS (
    DELETE FROM edges AS t WHERE t.tenant_id = %(tenant_id)s AND t.id = ANY (%(edges)s::uuid[]) RETURNING 1
),
linked AS (
    DELETE FROM entity_links AS t WHERE t.tenant_id = %(tenant_id)s AND t.id = ANY (%(links)s::uuid[]) RETURNING 1
),
reviewed AS (
    DELETE FROM memory_reviews AS t
    WHERE t.tenant_id = %(tenant_id)s AND (t.memory_id IN (SELECT id FROM gone) OR t.other_id IN (SELECT id FROM gone))
    RETURNING 1
),
done AS (
    DELETE FROM memory_acts AS t
    WHERE t.tenant_id = %(tenant_id)s AND (t.memory_id IN (SELECT id FROM gone) OR t.other_id IN (SELECT id FROM gone))
    RETURNING 1
)
SELECT (SELECT count(*) FROM vectors) AS memory_embeddings, (SELECT count(*) FROM tokens) AS token_vectors,
       (SELECT count(*) FROM named) AS mentions,
       (SELECT count(*) FROM extracted) AS extractions, (SELECT count(*) FROM tied) AS edges,
       (SELECT count(*) FROM linked) AS entity_links, (SELECT count(*) FROM reviewed) AS memory_reviews,
       (SELECT count(*) FROM done) AS memory_acts
