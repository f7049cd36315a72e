-- The vectors of passages; a trigger gives each the readers of its source. A passage that went away meanwhile is passed
-- over, and one that has a vector of this model gets the new one.
INSERT INTO passage_embeddings (tenant_id, passage_id, source_id, model, dimension, embedding)
SELECT %(tenant_id)s, p.id, p.source_id, %(model)s, %(dimension)s, given.embedding::vector
FROM unnest(%(ids)s::uuid[], %(vectors)s::text[]) AS given (id, embedding)
     JOIN passages AS p ON p.tenant_id = %(tenant_id)s AND p.id = given.id
ON CONFLICT (tenant_id, passage_id, model) DO UPDATE SET embedding = excluded.embedding, dimension = excluded.dimension
