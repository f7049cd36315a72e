-- Events of what goes. One that a worker holds stays its: it is made a deletion, which is what it will find to do, without
-- a word of what was there; the others are deleted, since the event that follows this does all that they would.
WITH gone AS MATERIALIZED (SELECT id FROM unnest(%(about)s::uuid[]) AS given (id)),
deleted AS (
    DELETE FROM outbox_events AS o USING gone
    WHERE o.tenant_id = %(tenant_id)s AND o.aggregate_id = gone.id AND o.status <> 'leased' RETURNING o.id
),
emptied AS (
    UPDATE outbox_events AS o SET event_type = 'GRAPH_DELETE', payload = '{}', errors = '[]', last_error = NULL
    FROM gone WHERE o.tenant_id = %(tenant_id)s AND o.aggregate_id = gone.id AND o.status = 'leased' RETURNING o.id
),
beside AS (
    UPDATE outbox_events AS o SET errors = '[]', last_error = NULL
    WHERE o.tenant_id = %(tenant_id)s AND o.aggregate_type = 'entity'
      AND o.aggregate_id IN (SELECT id FROM unnest(%(mentioned)s::uuid[]) AS given (id))
      AND o.aggregate_id NOT IN (SELECT id FROM gone)
      AND (o.errors <> '[]' OR o.last_error IS NOT NULL)
    RETURNING o.id
)
SELECT id FROM deleted UNION ALL SELECT id FROM emptied UNION ALL SELECT id FROM beside
