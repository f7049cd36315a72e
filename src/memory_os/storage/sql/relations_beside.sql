-- The edges and links that go with a node, whatever kind of node it is.
SELECT 'edge' AS aggregate_type, g.id, g.version FROM edges AS g
WHERE g.tenant_id = %(tenant_id)s AND g.id IN (
    SELECT id FROM edges WHERE tenant_id = %(tenant_id)s AND source_memory_id = %(id)s
    UNION SELECT id FROM edges WHERE tenant_id = %(tenant_id)s AND target_memory_id = %(id)s
    UNION SELECT id FROM edges WHERE tenant_id = %(tenant_id)s AND source_entity_id = %(id)s
    UNION SELECT id FROM edges WHERE tenant_id = %(tenant_id)s AND target_entity_id = %(id)s)
UNION ALL
SELECT 'entity_link', l.id, l.version FROM entity_links AS l
WHERE l.tenant_id = %(tenant_id)s AND l.id IN (
    SELECT id FROM entity_links WHERE tenant_id = %(tenant_id)s AND entity_id = %(id)s
    UNION SELECT id FROM entity_links WHERE tenant_id = %(tenant_id)s AND target_id = %(id)s)
