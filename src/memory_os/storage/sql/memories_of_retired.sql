-- The next active memories, by id, of some labels that refer to an entity which is retired: by a typed edge, or by a link
-- in force. An entity that another link replaced or ended (its `valid_to` has passed) is past its time as well: what its
-- ended links point at goes with it, unless another link of somebody still holds it.
SELECT m.id, m.label, m.status, found.entity_id
FROM memories AS m
CROSS JOIN LATERAL (
    SELECT e.id AS entity_id FROM edges AS g
    JOIN entities AS e ON e.tenant_id = g.tenant_id AND e.id IN (g.source_entity_id, g.target_entity_id)
    WHERE g.tenant_id = m.tenant_id AND m.id IN (g.source_memory_id, g.target_memory_id) AND e.status = 'retired'
    UNION ALL
    SELECT e.id FROM entity_links AS l
    JOIN entities AS e ON e.tenant_id = l.tenant_id AND e.id = l.entity_id
    WHERE l.tenant_id = m.tenant_id AND l.target_memory_id = m.id
      AND (e.status = 'retired' OR l.valid_to <= %(moment)s::timestamptz)
    UNION ALL
    SELECT e.id FROM mentions AS n
    JOIN entities AS e ON e.tenant_id = n.tenant_id AND e.id = n.entity_id
    WHERE n.tenant_id = m.tenant_id AND n.memory_id = m.id AND e.declared AND e.status = 'retired'
    ORDER BY entity_id LIMIT 1
) AS found
WHERE m.tenant_id = %(tenant_id)s AND m.id > %(after)s::uuid AND m.label = ANY (%(labels)s::text[]) AND m.status = 'active'
  AND m.created_at <= %(moment)s::timestamptz
ORDER BY m.id LIMIT %(batch)s
