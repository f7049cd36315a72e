-- Derived entities that nothing names and nothing points at any more; declared ones stay whatever happens.
DELETE FROM entities AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id = ANY (%(ids)s) AND NOT e.declared AND e.mention_records = 0
  AND NOT EXISTS (SELECT 1 FROM edges AS g WHERE g.tenant_id = e.tenant_id
                  AND (g.source_entity_id = e.id OR g.target_entity_id = e.id))
  AND NOT EXISTS (SELECT 1 FROM archived_edges AS g WHERE g.tenant_id = e.tenant_id
                  AND (g.source_entity_id = e.id OR g.target_entity_id = e.id))
  AND NOT EXISTS (SELECT 1 FROM entity_links AS l WHERE l.tenant_id = e.tenant_id
                  AND (l.entity_id = e.id OR l.target_entity_id = e.id))
