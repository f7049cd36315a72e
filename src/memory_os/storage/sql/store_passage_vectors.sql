-- The vectors of passages that are stored by now; a trigger gives them the readers of the source.
INSERT INTO passage_embeddings (tenant_id, passage_id, source_id, model, dimension, embedding)
SELECT %(tenant_id)s, given.id, %(source_id)s, %(model)s, %(dimension)s, given.embedding::vector
FROM unnest(%(ids)s::uuid[], %(vectors)s::text[]) AS given (id, embedding)
