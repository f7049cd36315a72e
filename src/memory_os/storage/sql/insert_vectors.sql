-- The vectors of memories; a memory that went away meanwhile, or that has a vector of this model, is passed over.
INSERT INTO memory_embeddings (tenant_id, memory_id, model, dimension, embedding)
SELECT %(tenant_id)s, given.id, %(model)s, %(dimension)s, given.embedding::vector
FROM unnest(%(ids)s::uuid[], %(vectors)s::text[]) AS given (id, embedding)
ON CONFLICT (tenant_id, memory_id, model) DO UPDATE SET embedding = excluded.embedding, dimension = excluded.dimension
