-- Passages of one source. A trigger gives them its readers. An id that is taken is left out of the answer, never
-- overwritten.
INSERT INTO passages (tenant_id, id, source_id, ordinal, text, locator, search, embedding_model)
SELECT %(tenant_id)s, id, %(source_id)s, ordinal, text, locator,
       memory_os_text_vector(search_text), %(model)s
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (id uuid, ordinal int, text text, locator jsonb, search_text text)
ON CONFLICT (tenant_id, id) DO NOTHING
RETURNING id
