-- What a graph would hold of that which this reader may see: counts of nodes and of edges by type. Every table is read
-- under its policy. Two entities occur together where a memory names both that the reader sees: `entity_pairs` counts
-- hidden ones, too.
WITH named AS MATERIALIZED (
    SELECT DISTINCT m.memory_id, m.entity_id
    FROM mentions AS m JOIN entities AS e ON e.tenant_id = m.tenant_id AND e.id = m.entity_id
    WHERE m.tenant_id = %(tenant_id)s AND e.tenant_id = %(tenant_id)s
)
SELECT 'node' AS what, 'memory' AS kind, count(*) AS number FROM memories WHERE tenant_id = %(tenant_id)s
UNION ALL
SELECT 'node', 'entity', count(*) FROM entities WHERE tenant_id = %(tenant_id)s
UNION ALL
SELECT 'node', 'record', count(DISTINCT target_id) FROM entity_links
WHERE tenant_id = %(tenant_id)s AND layer NOT IN ('memory', 'entity')
UNION ALL
SELECT 'edge', 'MENTIONS', count(*) FROM named
UNION ALL
SELECT 'edge', 'CO_OCCURS', count(DISTINCT (a.entity_id, b.entity_id))
FROM named AS a JOIN named AS b ON b.memory_id = a.memory_id AND b.entity_id > a.entity_id
UNION ALL
SELECT 'edge', 'LINK', count(*) FROM entity_links WHERE tenant_id = %(tenant_id)s
UNION ALL
SELECT 'edge', type, count(*) FROM edges WHERE tenant_id = %(tenant_id)s GROUP BY type
