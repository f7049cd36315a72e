-- Edges that make a claim which one of the given ones, under another id, is about to make. Each is looked up by its whole
-- key, of which there is one at most: the planner would read all edges of a hub.
WITH given AS (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS rows (
        id uuid, type text, source_memory_id uuid, source_entity_id uuid, target_memory_id uuid, target_entity_id uuid)
)
SELECT e.id FROM given AS g CROSS JOIN LATERAL (
    SELECT x.id FROM edges AS x
    WHERE x.tenant_id = %(tenant_id)s AND x.type = g.type
      AND x.source_memory_id = g.source_memory_id AND x.source_entity_id IS NULL
      AND x.target_memory_id = g.target_memory_id AND x.target_entity_id IS NULL LIMIT 1) AS e
WHERE e.id NOT IN (SELECT id FROM given)
UNION
SELECT e.id FROM given AS g CROSS JOIN LATERAL (
    SELECT x.id FROM edges AS x
    WHERE x.tenant_id = %(tenant_id)s AND x.type = g.type
      AND x.source_memory_id = g.source_memory_id AND x.source_entity_id IS NULL
      AND x.target_entity_id = g.target_entity_id AND x.target_memory_id IS NULL LIMIT 1) AS e
WHERE e.id NOT IN (SELECT id FROM given)
UNION
SELECT e.id FROM given AS g CROSS JOIN LATERAL (
    SELECT x.id FROM edges AS x
    WHERE x.tenant_id = %(tenant_id)s AND x.type = g.type
      AND x.source_entity_id = g.source_entity_id AND x.source_memory_id IS NULL
      AND x.target_memory_id = g.target_memory_id AND x.target_entity_id IS NULL LIMIT 1) AS e
WHERE e.id NOT IN (SELECT id FROM given)
ORDER BY id
