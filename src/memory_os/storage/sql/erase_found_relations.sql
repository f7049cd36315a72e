-- The edges and links that go with records, and the entities at their ends, which may have nothing left to hold them.
WITH gone AS MATERIALIZED (SELECT id FROM unnest(%(ids)s::uuid[]) AS given (id))
SELECT 'edge' AS aggregate_type, e.id, e.version, e.source_entity_id AS one_end, e.target_entity_id AS other_end
FROM gone JOIN edges AS e ON e.tenant_id = %(tenant_id)s AND e.source_memory_id = gone.id
UNION
SELECT 'edge', e.id, e.version, e.source_entity_id, e.target_entity_id
FROM gone JOIN edges AS e ON e.tenant_id = %(tenant_id)s AND e.target_memory_id = gone.id
UNION
SELECT 'edge', e.id, e.version, e.source_entity_id, e.target_entity_id
FROM gone JOIN edges AS e ON e.tenant_id = %(tenant_id)s AND e.source_entity_id = gone.id
UNION
SELECT 'edge', e.id, e.version, e.source_entity_id, e.target_entity_id
FROM gone JOIN edges AS e ON e.tenant_id = %(tenant_id)s AND e.target_entity_id = gone.id
UNION
SELECT 'entity_link', l.id, l.version, l.entity_id, l.target_entity_id
FROM gone JOIN entity_links AS l ON l.tenant_id = %(tenant_id)s AND l.entity_id = gone.id
UNION
SELECT 'entity_link', l.id, l.version, l.entity_id, l.target_entity_id
FROM gone JOIN entity_links AS l ON l.tenant_id = %(tenant_id)s AND l.target_id = gone.id
