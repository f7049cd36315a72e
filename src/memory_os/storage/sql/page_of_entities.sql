-- Like projected_entities.sql, a page at a time.
SELECT e.id, e.name, e.entity_type, e.declared, e.mention_occurrences, e.mention_confidence
FROM entities AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id > %(after)s
  AND (e.declared OR e.mention_records > 0
       OR EXISTS (SELECT 1 FROM edges AS g WHERE g.tenant_id = e.tenant_id AND g.source_entity_id = e.id)
       OR EXISTS (SELECT 1 FROM edges AS g WHERE g.tenant_id = e.tenant_id AND g.target_entity_id = e.id)
       OR EXISTS (SELECT 1 FROM entity_links AS l WHERE l.tenant_id = e.tenant_id AND l.entity_id = e.id)
       OR EXISTS (SELECT 1 FROM entity_links AS l WHERE l.tenant_id = e.tenant_id AND l.target_entity_id = e.id))
ORDER BY e.id LIMIT %(page)s
