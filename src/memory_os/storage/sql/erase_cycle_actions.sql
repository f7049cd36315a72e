-- What cycles did to what goes, or would have done: edges that they archived, and their actions. Of derived entities that
-- a cycle removed the actions hold the names, and nobody knows any more which texts these came from: all of them go.
WITH gone AS MATERIALIZED (SELECT id FROM unnest(%(about)s::uuid[]) AS given (id)),
tied AS (
    DELETE FROM archived_edges AS t
    WHERE t.tenant_id = %(tenant_id)s
      AND (t.source_memory_id IN (SELECT id FROM gone) OR t.target_memory_id IN (SELECT id FROM gone)
           OR t.source_entity_id IN (SELECT id FROM gone) OR t.target_entity_id IN (SELECT id FROM gone))
    RETURNING t.id
),
known AS MATERIALIZED (SELECT id FROM gone UNION SELECT id FROM tied),
done AS (
    DELETE FROM cycle_actions AS a
    WHERE a.tenant_id = %(tenant_id)s
      AND (a.target_id IN (SELECT id FROM known) OR a.other_id IN (SELECT id FROM known) OR a.rule = 'drop_entities'
           OR (a.target_kind = 'insight' AND a.after -> 'members' ?| ARRAY(SELECT id::text FROM gone)))
    RETURNING 1
),
moved AS (
    UPDATE archived_edges AS e SET migrated_from = NULL
    WHERE e.tenant_id = %(tenant_id)s AND e.migrated_from IN (SELECT id FROM gone) AND e.id NOT IN (SELECT id FROM tied)
)
SELECT (SELECT count(*) FROM tied) AS archived_edges, (SELECT count(*) FROM done) AS cycle_actions
