-- The cosine similarity of passages to a vector, each looked up by its key; those that the reader may not see are left out.
SELECT given.id, v.similarity
FROM unnest(%(ids)s::uuid[]) AS given (id)
CROSS JOIN LATERAL (
    SELECT 1 - (embedding <=> %(vector)s::vector) AS similarity FROM passage_embeddings
    WHERE tenant_id = %(tenant_id)s AND passage_id = given.id AND model = %(model)s OFFSET 0
) AS v
