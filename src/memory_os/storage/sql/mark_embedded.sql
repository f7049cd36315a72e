-- Only what still has the title and the text that the vector was made of; a changed memory is found again.
UPDATE memories AS m SET embedding_model = %(model)s
FROM unnest(%(ids)s::uuid[], %(titles)s::text[], %(texts)s::text[]) AS given (id, title, text)
WHERE m.tenant_id = %(tenant_id)s AND m.id = given.id AND m.text = given.text
  AND m.title IS NOT DISTINCT FROM given.title AND m.embedding_model IS NULL
RETURNING m.id
