-- The context edges of a memory that another one is about to supersede, and of that other one those which they will then
-- equal: same type, same far end, same direction. An edge between the two is none of them: it would lead back to where
-- it begins. Each is looked up by its whole key, of which there is one at most: the planner would read all edges of a
-- hub. Held in the order of their ids, as by everybody who holds several.
SELECT e.id, e.type, e.source_memory_id, e.source_entity_id, e.target_memory_id, e.target_entity_id, e.confidence,
       e.co_reference_count, e.claimed_confidence, e.migrated_from, e.created_by, e.created_at, e.updated_at, e.version,
       e.used_at, e.faded_at
FROM edges AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id IN (
    SELECT m.id FROM edges AS m
    WHERE m.tenant_id = %(tenant_id)s AND m.source_memory_id = %(source)s AND m.type = ANY (%(types)s::text[])
      AND m.target_memory_id IS DISTINCT FROM %(into)s
    UNION
    SELECT m.id FROM edges AS m
    WHERE m.tenant_id = %(tenant_id)s AND m.target_memory_id = %(source)s AND m.type = ANY (%(types)s::text[])
      AND m.source_memory_id IS DISTINCT FROM %(into)s
    UNION
    SELECT t.id FROM edges AS m CROSS JOIN LATERAL (
        SELECT x.id FROM edges AS x
        WHERE x.tenant_id = %(tenant_id)s AND x.type = m.type
          AND x.source_memory_id = %(into)s AND x.source_entity_id IS NULL
          AND x.target_memory_id = m.target_memory_id AND x.target_entity_id IS NULL LIMIT 1) AS t
    WHERE m.tenant_id = %(tenant_id)s AND m.source_memory_id = %(source)s AND m.type = ANY (%(types)s::text[])
    UNION
    SELECT t.id FROM edges AS m CROSS JOIN LATERAL (
        SELECT x.id FROM edges AS x
        WHERE x.tenant_id = %(tenant_id)s AND x.type = m.type
          AND x.source_memory_id = %(into)s AND x.source_entity_id IS NULL
          AND x.target_entity_id = m.target_entity_id AND x.target_memory_id IS NULL LIMIT 1) AS t
    WHERE m.tenant_id = %(tenant_id)s AND m.source_memory_id = %(source)s AND m.type = ANY (%(types)s::text[])
    UNION
    SELECT t.id FROM edges AS m CROSS JOIN LATERAL (
        SELECT x.id FROM edges AS x
        WHERE x.tenant_id = %(tenant_id)s AND x.type = m.type
          AND x.target_memory_id = %(into)s AND x.target_entity_id IS NULL
          AND x.source_memory_id = m.source_memory_id AND x.source_entity_id IS NULL LIMIT 1) AS t
    WHERE m.tenant_id = %(tenant_id)s AND m.target_memory_id = %(source)s AND m.type = ANY (%(types)s::text[])
    UNION
    SELECT t.id FROM edges AS m CROSS JOIN LATERAL (
        SELECT x.id FROM edges AS x
        WHERE x.tenant_id = %(tenant_id)s AND x.type = m.type
          AND x.target_memory_id = %(into)s AND x.target_entity_id IS NULL
          AND x.source_entity_id = m.source_entity_id AND x.source_memory_id IS NULL LIMIT 1) AS t
    WHERE m.tenant_id = %(tenant_id)s AND m.target_memory_id = %(source)s AND m.type = ANY (%(types)s::text[]))
ORDER BY e.id FOR UPDATE
