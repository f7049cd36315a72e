-- The vectors of memories, with the readers of each; a memory that went away meanwhile is passed over, and one that has a
-- vector of this model gets the new one.
INSERT INTO memory_embeddings (
    tenant_id, memory_id, model, dimension, embedding, visibility, user_id, reader_users, reader_groups
)
SELECT %(tenant_id)s, given.id, %(model)s, %(dimension)s, given.embedding::vector, m.visibility, m.user_id,
       m.reader_users, m.reader_groups
FROM unnest(%(ids)s::uuid[], %(vectors)s::text[]) AS given (id, embedding)
     JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = given.id
ON CONFLICT (tenant_id, memory_id, model) DO UPDATE SET embedding = excluded.embedding, dimension = excluded.dimension
