-- Who has bound themselves to these memories: the entities from which a COMMITTED_TO edge leads there, as this reader sees
-- them.
SELECT e.target_memory_id AS memory_id, e.id AS edge_id, e.source_entity_id AS entity_id
FROM edges AS e
WHERE e.tenant_id = %(tenant_id)s AND e.target_memory_id = ANY (%(memories)s::uuid[]) AND e.type = 'COMMITTED_TO'
  AND e.source_entity_id IS NOT NULL
ORDER BY e.target_memory_id, e.created_at, e.id
