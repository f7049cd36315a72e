-- The entities that each memory mentions, or mentioned when the graph was told last.
WITH gone AS MATERIALIZED (SELECT id FROM unnest(%(memories)s::uuid[]) AS given (id)),
named AS (
    SELECT m.memory_id, m.entity_id FROM gone
    JOIN mentions AS m ON m.tenant_id = %(tenant_id)s AND m.memory_id = gone.id
    UNION
    SELECT o.aggregate_id, noted.entity_id::uuid FROM gone
    JOIN outbox_events AS o ON o.tenant_id = %(tenant_id)s AND o.aggregate_id = gone.id AND o.aggregate_type = 'memory'
         AND o.status IN ('pending', 'leased', 'dead'),
         jsonb_array_elements_text(o.payload -> 'mentioned') AS noted (entity_id)
)
SELECT memory_id, array_agg(entity_id ORDER BY entity_id) AS entity_ids FROM named GROUP BY memory_id
