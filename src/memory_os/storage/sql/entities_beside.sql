-- Entities at the other end of an edge or a link of this node, whatever kind of node it is.
SELECT g.source_entity_id AS id FROM edges AS g
WHERE g.tenant_id = %(tenant_id)s AND g.target_memory_id = %(id)s AND g.source_entity_id IS NOT NULL
UNION
SELECT g.target_entity_id FROM edges AS g
WHERE g.tenant_id = %(tenant_id)s AND g.source_memory_id = %(id)s AND g.target_entity_id IS NOT NULL
UNION
SELECT l.entity_id FROM entity_links AS l WHERE l.tenant_id = %(tenant_id)s AND l.target_id = %(id)s
UNION
SELECT l.target_entity_id FROM entity_links AS l
WHERE l.tenant_id = %(tenant_id)s AND l.entity_id = %(id)s AND l.target_entity_id IS NOT NULL
