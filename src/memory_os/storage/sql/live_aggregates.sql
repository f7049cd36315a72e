-- Every aggregate with such events, with the entities and records at its ends where it is an edge or a link. What counts
-- and holds entities is not theirs alone: the memories that name them and the edges that point at them.
SELECT o.aggregate_type, o.aggregate_id AS id, bool_or(o.status <> 'dead') AS waiting,
       array_remove(array_agg(DISTINCT g.source_entity_id) || array_agg(DISTINCT g.target_entity_id)
                    || array_agg(DISTINCT l.entity_id) || array_agg(DISTINCT l.target_id), NULL) AS ends
FROM outbox_events AS o
LEFT JOIN edges AS g ON o.aggregate_type = 'edge' AND g.tenant_id = o.tenant_id AND g.id = o.aggregate_id
LEFT JOIN entity_links AS l
       ON o.aggregate_type = 'entity_link' AND l.tenant_id = o.tenant_id AND l.id = o.aggregate_id
WHERE o.tenant_id = %(tenant_id)s AND o.status IN ('pending', 'leased', 'dead')
  AND o.aggregate_type IN ('memory', 'edge', 'entity_link')
GROUP BY o.aggregate_type, o.aggregate_id
LIMIT %(limit)s
