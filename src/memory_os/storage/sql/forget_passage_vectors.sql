-- Passages whose vector is of another model, a batch at a time, lose the mark of it; the embedder then finds them.
UPDATE passages AS p SET embedding_model = NULL FROM (
    SELECT id FROM passages
    WHERE tenant_id = %(tenant_id)s AND embedding_model <> %(model)s ORDER BY id LIMIT %(batch)s FOR UPDATE
) AS other WHERE p.tenant_id = %(tenant_id)s AND p.id = other.id
