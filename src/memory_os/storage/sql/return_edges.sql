-- Edges get back the entities at their ends, and their count without what they took up.
UPDATE edges AS e
SET source_entity_id = given.source_entity_id, target_entity_id = given.target_entity_id,
    co_reference_count = given.co_reference_count, version = e.version + 1, updated_at = now()
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
    id uuid, source_entity_id uuid, target_entity_id uuid, co_reference_count int)
WHERE e.tenant_id = %(tenant_id)s AND e.id = given.id
RETURNING e.id, e.version
