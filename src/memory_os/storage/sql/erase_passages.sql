WITH gone AS MATERIALIZED (
    SELECT p.id FROM passages AS p
    WHERE p.tenant_id = %(tenant_id)s AND p.source_id IN (SELECT id FROM unnest(%(sources)s::uuid[]) AS given (id))
),
vectors AS (
    DELETE FROM passage_embeddings AS t USING gone
    WHERE t.tenant_id = %(tenant_id)s AND t.passage_id = gone.id RETURNING 1
),
tokens AS (
    DELETE FROM token_vectors AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.passage_id = gone.id RETURNING 1
),
texts AS (
    DELETE FROM passages AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.id = gone.id RETURNING 1
)
SELECT (SELECT count(*) FROM vectors) AS passage_embeddings, (SELECT count(*) FROM tokens) AS token_vectors,
       (SELECT count(*) FROM texts) AS passages
