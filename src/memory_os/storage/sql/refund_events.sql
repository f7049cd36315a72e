-- The infrastructure failed, not the event: the attempt is given back. What has waited a day for the infrastructure is
-- parked with that reason, so that nothing stays pending for ever unseen.
UPDATE outbox_events
SET status = CASE WHEN created_at < now() - %(cap_s)s * interval '1 second' THEN 'dead' ELSE 'pending' END,
    finished_at = CASE WHEN created_at < now() - %(cap_s)s * interval '1 second' THEN clock_timestamp() END,
    attempts = greatest(attempts - 1, 0),
    available_at = clock_timestamp() + %(wait_s)s * interval '1 second',
    lease_token = NULL,
    lease_until = NULL,
    last_error = coalesce(%(summary)s, last_error)
WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s) AND status = 'leased' AND lease_token = %(token)s
