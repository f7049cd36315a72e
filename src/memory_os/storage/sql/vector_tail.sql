-- A tenant's partition of the index of vectors, if it has one, and how many vectors of the current model wait for it, counted
-- up to a bound: those of its model that all of the tenant may read and that are not marked.
SELECT p.model, p.rows, p.marked,
       (SELECT count(*) FROM (
           SELECT FROM memory_embeddings
           WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND visibility = 'tenant' AND NOT indexed
           LIMIT greatest(%(most)s, p.rows * %(share)s + 1)::bigint
       ) AS few)
       + (SELECT count(*) FROM (
           SELECT FROM passage_embeddings
           WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND visibility = 'tenant' AND NOT indexed
           LIMIT greatest(%(most)s, p.rows * %(share)s + 1)::bigint
       ) AS few) AS waiting
FROM (SELECT) AS one LEFT JOIN vector_partitions AS p ON p.tenant_id = %(tenant_id)s
