-- The next derived entities, by id, that no memory names, and no edge and no link ties down.
SELECT e.id, e.name FROM entities AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id > %(after)s::uuid AND NOT e.declared AND e.mention_records = 0
  AND e.created_at <= %(moment)s::timestamptz
  AND NOT EXISTS (SELECT 1 FROM edges AS g WHERE g.tenant_id = e.tenant_id
                  AND (g.source_entity_id = e.id OR g.target_entity_id = e.id))
  AND NOT EXISTS (SELECT 1 FROM entity_links AS l WHERE l.tenant_id = e.tenant_id
                  AND (l.entity_id = e.id OR l.target_entity_id = e.id))
ORDER BY e.id LIMIT %(batch)s
