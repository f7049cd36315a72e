-- Edges get other ends among memories, and the confidence and count of what has become one with them, or had. An equal
-- edge must be gone by now, in a statement of its own: the unique key is checked row by row.
UPDATE edges AS e
SET source_memory_id = given.source_memory_id, target_memory_id = given.target_memory_id,
    confidence = given.confidence, co_reference_count = given.co_reference_count,
    claimed_confidence = given.claimed_confidence, migrated_from = given.migrated_from,
    version = e.version + 1, updated_at = now()
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
    id uuid, source_memory_id uuid, target_memory_id uuid, confidence float8, co_reference_count int,
    claimed_confidence float8, migrated_from uuid)
WHERE e.tenant_id = %(tenant_id)s AND e.id = given.id
RETURNING e.id, e.version
