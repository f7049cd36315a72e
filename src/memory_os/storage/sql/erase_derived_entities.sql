-- As `prune_derived_entities.sql`, with the names that go: other places may tell of them.
DELETE FROM entities AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id = ANY (%(ids)s) AND NOT e.declared AND e.mention_records = 0
  AND NOT EXISTS (SELECT 1 FROM edges AS g WHERE g.tenant_id = e.tenant_id AND g.source_entity_id = e.id)
  AND NOT EXISTS (SELECT 1 FROM edges AS g WHERE g.tenant_id = e.tenant_id AND g.target_entity_id = e.id)
  AND NOT EXISTS (SELECT 1 FROM entity_links AS l WHERE l.tenant_id = e.tenant_id AND l.entity_id = e.id)
  AND NOT EXISTS (SELECT 1 FROM entity_links AS l WHERE l.tenant_id = e.tenant_id AND l.target_entity_id = e.id)
RETURNING e.id, e.name
