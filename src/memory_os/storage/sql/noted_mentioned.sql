SELECT DISTINCT o.aggregate_id AS memory_id, noted.entity_id
FROM outbox_events AS o, jsonb_array_elements_text(o.payload -> 'mentioned') AS noted (entity_id)
WHERE o.tenant_id = %(tenant_id)s AND o.aggregate_id = ANY (%(ids)s) AND o.aggregate_type = 'memory'
  AND o.status IN ('pending', 'leased', 'dead')
