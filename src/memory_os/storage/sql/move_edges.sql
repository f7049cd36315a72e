-- Edges get another entity at the ends where `source` was, and the count of what has collapsed into them. An equal edge
-- must be gone by now, in a statement of its own: the unique key is checked row by row.
UPDATE edges AS e
SET source_entity_id = CASE WHEN e.source_entity_id = %(source)s THEN %(into)s ELSE e.source_entity_id END,
    target_entity_id = CASE WHEN e.target_entity_id = %(source)s THEN %(into)s ELSE e.target_entity_id END,
    co_reference_count = given.co_reference_count, version = e.version + 1, updated_at = now()
FROM unnest(%(ids)s::uuid[], %(counts)s::int[]) AS given (id, co_reference_count)
WHERE e.tenant_id = %(tenant_id)s AND e.id = given.id
RETURNING e.id, e.version
