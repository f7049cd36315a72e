-- Put some of the vectors of passages that wait into their tenant's partition, and mark them; one that lies in it since a
-- build is only marked. Vectors that are just being changed are left for the next time.
WITH waiting AS MATERIALIZED (
    SELECT e.passage_id, e.source_id, e.embedding FROM passage_embeddings AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.model = %(model)s AND e.visibility = 'tenant' AND NOT e.indexed
      AND EXISTS (SELECT FROM vector_partitions AS p WHERE p.tenant_id = %(tenant_id)s AND p.model = %(model)s)
    LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED
),
put AS (
    INSERT INTO vector_index (tenant_id, kind, record_id, source_id, embedding)
    SELECT %(tenant_id)s, 'passage', passage_id, source_id, embedding::halfvec FROM waiting
    ON CONFLICT DO NOTHING RETURNING 1
),
marked AS (
    UPDATE passage_embeddings AS e SET indexed = true FROM waiting AS w
    WHERE e.tenant_id = %(tenant_id)s AND e.passage_id = w.passage_id AND e.model = %(model)s RETURNING 1
)
SELECT (SELECT count(*) FROM marked) AS marked, (SELECT count(*) FROM put) AS put
