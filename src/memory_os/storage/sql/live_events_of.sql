-- Which of these aggregates have events that are still to change the graph, or that died before they could.
SELECT aggregate_id AS id, bool_or(status <> 'dead') AS waiting
FROM outbox_events
WHERE tenant_id = %(tenant_id)s AND aggregate_id = ANY (%(ids)s) AND status IN ('pending', 'leased', 'dead')
GROUP BY aggregate_id
