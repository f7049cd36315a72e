-- Token vectors of memories and passages that are still there; a trigger gives each the readers of its record, and
-- passes over what was made of another text than the record has now. In the order of their ids, so that two writers
-- wait for each other rather than lock each other out.
INSERT INTO token_vectors (tenant_id, record_id, memory_id, passage_id, model, digest, vectors)
SELECT %(tenant_id)s, given.id, m.id, p.id, %(model)s, given.digest, given.vectors
FROM unnest(%(ids)s::uuid[], %(digests)s::bytea[], %(vectors)s::bytea[]) AS given (id, digest, vectors)
     LEFT JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = given.id
     LEFT JOIN passages AS p ON p.tenant_id = %(tenant_id)s AND p.id = given.id AND m.id IS NULL
WHERE m.id IS NOT NULL OR p.id IS NOT NULL
ORDER BY given.id
ON CONFLICT (tenant_id, record_id, model) DO UPDATE
SET digest = excluded.digest, vectors = excluded.vectors, used_at = excluded.used_at
