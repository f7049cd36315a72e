-- What memories mentioned, kept with their events until these are projected: see `derivation.note_mentioned`.
UPDATE outbox_events AS o
SET payload = jsonb_set(o.payload, '{mentioned}', coalesce(o.payload -> 'mentioned', '[]') || to_jsonb(given.entity_ids))
FROM (
    SELECT memory_id, array_agg(entity_id) AS entity_ids
    FROM unnest(%(memory_ids)s::uuid[], %(entity_ids)s::uuid[]) AS pair (memory_id, entity_id) GROUP BY memory_id
) AS given
WHERE o.tenant_id = %(tenant_id)s AND o.aggregate_id = given.memory_id AND o.aggregate_type = 'memory'
  AND o.status IN ('pending', 'leased', 'dead')
