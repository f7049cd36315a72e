-- The edges of an entity that is about to become part of another, and of that other one those which they will then
-- equal: same type, same memory at the far end. An edge has a memory at one end at least, so its equal is looked up by
-- that memory. Held in the order of their ids, as by everybody who holds several.
SELECT e.id, e.type, e.source_memory_id, e.source_entity_id, e.target_memory_id, e.target_entity_id, e.confidence,
       e.co_reference_count, e.claimed_confidence, e.migrated_from, e.created_by, e.created_at, e.updated_at, e.version
FROM edges AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id IN (
    SELECT m.id FROM edges AS m WHERE m.tenant_id = %(tenant_id)s AND m.source_entity_id = %(source)s
    UNION
    SELECT m.id FROM edges AS m WHERE m.tenant_id = %(tenant_id)s AND m.target_entity_id = %(source)s
    UNION
    SELECT t.id FROM edges AS m JOIN edges AS t ON t.target_memory_id = m.target_memory_id AND t.type = m.type
    WHERE m.tenant_id = %(tenant_id)s AND t.tenant_id = %(tenant_id)s
      AND m.source_entity_id = %(source)s AND t.source_entity_id = %(into)s
    UNION
    SELECT t.id FROM edges AS m JOIN edges AS t ON t.source_memory_id = m.source_memory_id AND t.type = m.type
    WHERE m.tenant_id = %(tenant_id)s AND t.tenant_id = %(tenant_id)s
      AND m.target_entity_id = %(source)s AND t.target_entity_id = %(into)s)
ORDER BY e.id FOR UPDATE
