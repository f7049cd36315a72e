-- One failed attempt of the event itself: back to pending after a wait, or dead after the fifth.
UPDATE outbox_events
SET status = CASE WHEN attempts >= 5 THEN 'dead' ELSE 'pending' END,
    finished_at = CASE WHEN attempts >= 5 THEN clock_timestamp() END,
    available_at = clock_timestamp() + %(wait_s)s * interval '1 second',
    lease_token = NULL,
    lease_until = NULL,
    last_error = %(summary)s,
    errors = errors || %(error)s::jsonb
WHERE tenant_id = %(tenant_id)s AND id = %(id)s AND status = 'leased' AND lease_token = %(token)s
RETURNING status
