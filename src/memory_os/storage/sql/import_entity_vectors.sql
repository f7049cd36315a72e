-- Only of what still has the text that the vector was made of.
UPDATE entities AS e SET embedding = given.embedding::vector, embedding_model = %(model)s
FROM unnest(%(ids)s::uuid[], %(versions)s::bigint[], %(vectors)s::text[]) AS given (id, version, embedding)
WHERE e.tenant_id = %(tenant_id)s AND e.id = given.id AND e.version = given.version AND e.embedding IS NULL
