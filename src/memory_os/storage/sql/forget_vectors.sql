-- Memories whose vector is of another model, a batch at a time, lose the mark of it; the embedder then finds them.
UPDATE memories AS m SET embedding_model = NULL FROM (
    SELECT id FROM memories
    WHERE tenant_id = %(tenant_id)s AND embedding_model <> %(model)s ORDER BY id LIMIT %(batch)s FOR UPDATE
) AS other WHERE m.tenant_id = %(tenant_id)s AND m.id = other.id
