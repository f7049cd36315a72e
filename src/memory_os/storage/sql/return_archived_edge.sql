-- An edge comes back from the archive as it was, with a version above that of its deletion; unless the same is claimed
-- again by now.
WITH back AS (
    INSERT INTO edges (
        tenant_id, id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id, confidence,
        co_reference_count, claimed_confidence, migrated_from, created_by, created_at, updated_at, version, used_at, faded_at)
    SELECT tenant_id, id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id, confidence,
           co_reference_count, claimed_confidence, migrated_from, created_by, created_at, updated_at, version + 2, used_at,
           faded_at
    FROM archived_edges WHERE tenant_id = %(tenant_id)s AND id = %(id)s
    ON CONFLICT DO NOTHING
    RETURNING id, version
), gone AS (
    DELETE FROM archived_edges AS a USING back WHERE a.tenant_id = %(tenant_id)s AND a.id = back.id
)
SELECT id, version FROM back
