-- Only what still has the text that the vector was made of.
UPDATE passages AS p SET embedding_model = %(model)s
FROM unnest(%(ids)s::uuid[], %(texts)s::text[]) AS given (id, text)
WHERE p.tenant_id = %(tenant_id)s AND p.id = given.id AND p.text = given.text AND p.embedding_model IS NULL
RETURNING p.id
