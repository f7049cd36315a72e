-- Put some of the vectors that wait into their tenant's partition, and mark them; one that lies in it since a build is only
-- marked. Vectors that are just being changed are left for the next time.
WITH waiting AS MATERIALIZED (
    SELECT e.memory_id, e.embedding FROM memory_embeddings AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.model = %(model)s AND e.visibility = 'tenant' AND NOT e.indexed
      AND EXISTS (SELECT FROM vector_partitions AS p WHERE p.tenant_id = %(tenant_id)s AND p.model = %(model)s)
    LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED
),
put AS (
    INSERT INTO vector_index (tenant_id, kind, record_id, embedding)
    SELECT %(tenant_id)s, 'memory', memory_id, embedding::halfvec FROM waiting
    ON CONFLICT DO NOTHING RETURNING 1
),
marked AS (
    UPDATE memory_embeddings AS e SET indexed = true FROM waiting AS w
    WHERE e.tenant_id = %(tenant_id)s AND e.memory_id = w.memory_id AND e.model = %(model)s RETURNING 1
)
SELECT (SELECT count(*) FROM marked) AS marked, (SELECT count(*) FROM put) AS put
