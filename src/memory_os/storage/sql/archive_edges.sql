-- Edges move to the archive as they are, unless they were used or changed since they were looked at.
WITH gone AS (
    DELETE FROM edges AS e
    USING unnest(%(ids)s::uuid[], %(confidences)s::float8[], %(used)s::timestamptz[]) AS given (id, confidence, used_at)
    WHERE e.tenant_id = %(tenant_id)s AND e.id = given.id AND e.confidence = given.confidence
      AND e.used_at = given.used_at
    RETURNING e.*
)
INSERT INTO archived_edges (
    tenant_id, id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id, confidence,
    co_reference_count, claimed_confidence, migrated_from, created_by, created_at, updated_at, version, used_at, faded_at)
SELECT tenant_id, id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id, confidence,
       co_reference_count, claimed_confidence, migrated_from, created_by, created_at, updated_at, version, used_at, faded_at
FROM gone
RETURNING id, version, source_entity_id, target_entity_id
