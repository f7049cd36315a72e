-- now() is the start of this short transaction; clock_timestamp() could not be looked up in an index.
-- Leased and expired first, else pending and due, oldest first; attempts count here and are committed before the work, so
-- that an event that kills its worker dies after five attempts too. What a worker never came back from is taken in ever
-- smaller batches, and alone in the end: so it is the killer that dies, and not those that were claimed beside it.
-- Claims nothing when the tenant's lease is somebody else's; who holds it renews it beside its work, and an update here
-- would wait for what is derived meanwhile under the same lock.
WITH held AS MATERIALIZED (
    SELECT 1 FROM projection_leases WHERE tenant_id = %(tenant_id)s AND token = %(token)s FOR SHARE
),
expired AS MATERIALIZED (
    SELECT id, attempts FROM outbox_events
    WHERE tenant_id = %(tenant_id)s AND status = 'leased' AND lease_until < now()
      AND EXISTS (SELECT 1 FROM held)
    ORDER BY lease_until, id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
),
suspects AS MATERIALIZED (
    SELECT id FROM (
        SELECT id, attempts, row_number() OVER (ORDER BY attempts DESC, id) AS place, max(attempts) OVER () AS most
        FROM expired WHERE attempts < 5
    ) AS ranked
    WHERE place <= CASE most WHEN 1 THEN ceil(%(batch)s / 8.0) WHEN 2 THEN ceil(%(batch)s / 64.0) ELSE 1 END
),
due AS MATERIALIZED (
    SELECT id FROM outbox_events
    WHERE tenant_id = %(tenant_id)s AND status = 'pending' AND available_at <= now()
      AND EXISTS (SELECT 1 FROM held) AND NOT EXISTS (SELECT 1 FROM suspects)
    ORDER BY available_at, id LIMIT %(batch)s FOR UPDATE SKIP LOCKED
),
taken AS MATERIALIZED (
    SELECT id, true AS suspect FROM suspects
    UNION ALL SELECT id, true FROM expired WHERE attempts >= 5
    UNION ALL SELECT id, false FROM due
)
UPDATE outbox_events AS o
SET status = CASE WHEN o.attempts >= 5 THEN 'dead' ELSE 'leased' END,
    attempts = least(o.attempts + 1, 5),
    lease_token = CASE WHEN o.attempts >= 5 THEN NULL ELSE %(token)s::uuid END,
    lease_until = CASE WHEN o.attempts >= 5 THEN NULL
                       ELSE clock_timestamp() + %(lease_s)s * interval '1 second' END,
    finished_at = CASE WHEN o.attempts >= 5 THEN clock_timestamp() END,
    last_error = CASE WHEN o.attempts >= 5 THEN 'LeaseExpired: five workers took it and none came back'
                      ELSE o.last_error END
FROM taken WHERE o.tenant_id = %(tenant_id)s AND o.id = taken.id
RETURNING o.id, o.event_type, o.aggregate_type, o.aggregate_id, o.version, o.attempts, o.status, o.request_id,
          o.created_at, taken.suspect
