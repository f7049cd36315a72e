-- Edges that were deleted come back as they were, under their ids, with a version above that of their deletion. One
-- whose id or claim is taken by now stays away. One that was deleted before it was noted when edges are used counts as
-- used now.
INSERT INTO edges (tenant_id, id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id,
                   confidence, co_reference_count, claimed_confidence, migrated_from, created_by, created_at, version,
                   used_at, faded_at)
SELECT %(tenant_id)s, g.id, g.type, g.source_memory_id, g.source_entity_id, g.target_memory_id, g.target_entity_id,
       g.confidence, g.co_reference_count, g.claimed_confidence, g.migrated_from, g.created_by, g.created_at,
       g.version + 2, coalesce(g.used_at, now()), g.faded_at
FROM jsonb_to_recordset(%(rows)s::jsonb) AS g (
    id uuid, type text, source_memory_id uuid, source_entity_id uuid, target_memory_id uuid, target_entity_id uuid,
    confidence float8, co_reference_count int, claimed_confidence float8, migrated_from uuid, created_by uuid,
    created_at timestamptz, version bigint, used_at timestamptz, faded_at timestamptz)
ON CONFLICT DO NOTHING
RETURNING id, version
