-- The next derived entities, by id, that no memory names, and that no edge, archived or not, and no link ties down; with what
-- an action keeps of each.
SELECT e.id, jsonb_build_object(
    'name', e.name, 'entity_type', e.entity_type, 'confidence', e.confidence, 'mention_confidence', e.mention_confidence,
    'first_seen', e.first_seen, 'last_seen', e.last_seen, 'created_at', e.created_at) AS kept
FROM entities AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id > %(after)s::uuid AND NOT e.declared AND e.mention_records = 0
  AND e.created_at <= %(moment)s::timestamptz
  AND NOT EXISTS (SELECT 1 FROM edges AS g WHERE g.tenant_id = e.tenant_id
                  AND (g.source_entity_id = e.id OR g.target_entity_id = e.id))
  AND NOT EXISTS (SELECT 1 FROM archived_edges AS g WHERE g.tenant_id = e.tenant_id
                  AND (g.source_entity_id = e.id OR g.target_entity_id = e.id))
  AND NOT EXISTS (SELECT 1 FROM entity_links AS l WHERE l.tenant_id = e.tenant_id
                  AND (l.entity_id = e.id OR l.target_entity_id = e.id))
ORDER BY e.id LIMIT %(batch)s
