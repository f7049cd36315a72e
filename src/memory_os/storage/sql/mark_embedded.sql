-- Only what still has the text that the vector was made of; a changed memory is found again.
UPDATE memories AS m SET embedding_model = %(model)s
FROM unnest(%(ids)s::uuid[], %(texts)s::text[]) AS given (id, text)
WHERE m.tenant_id = %(tenant_id)s AND m.id = given.id AND m.text = given.text AND m.embedding_model IS NULL
RETURNING m.id
