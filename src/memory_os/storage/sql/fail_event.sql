-- One failed attempt of the event itself: back to pending after a wait, or dead after the fifth. Of a record that was
-- deleted no words are kept: see `erase_events.sql`. Derived entities leave no tombstone, and their ids tell them apart.
UPDATE outbox_events AS o
SET status = CASE WHEN o.attempts >= 5 THEN 'dead' ELSE 'pending' END,
    finished_at = CASE WHEN o.attempts >= 5 THEN clock_timestamp() END,
    available_at = clock_timestamp() + %(wait_s)s * interval '1 second',
    lease_token = NULL,
    lease_until = NULL,
    last_error = CASE WHEN seen.gone THEN %(summary_of_gone)s ELSE %(summary)s END,
    errors = o.errors || CASE WHEN seen.gone THEN %(error_of_gone)s::jsonb ELSE %(error)s::jsonb END
FROM (
    SELECT e.tenant_id, e.id,
           EXISTS (SELECT 1 FROM graph_tombstones AS t
                   WHERE t.tenant_id = e.tenant_id AND t.aggregate_id = e.aggregate_id
                     AND t.aggregate_type = e.aggregate_type)
           OR (e.aggregate_type = 'entity' AND uuid_extract_version(e.aggregate_id) = 5
               AND NOT EXISTS (SELECT 1 FROM entities AS n
                               WHERE n.tenant_id = e.tenant_id AND n.id = e.aggregate_id)) AS gone
    FROM outbox_events AS e WHERE e.tenant_id = %(tenant_id)s AND e.id = %(id)s
) AS seen
WHERE o.tenant_id = %(tenant_id)s AND o.id = %(id)s AND o.tenant_id = seen.tenant_id AND o.id = seen.id
  AND o.status = 'leased' AND o.lease_token = %(token)s
RETURNING o.status
