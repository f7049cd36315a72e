-- What the dump holds of workers, leases and graphs is of another time. Events that somebody held are free; whatever
-- graph is found now is not the one that belongs to these rows, so that readers are told until it has been made anew.
WITH freed AS (
    UPDATE outbox_events SET status = 'pending', lease_token = NULL, lease_until = NULL WHERE status = 'leased'
),
unleased AS (
    DELETE FROM projection_leases
),
dismissed AS (
    DELETE FROM workers
),
unmet AS (
    DELETE FROM graph_servers
),
called_off AS (
    UPDATE graph_rebuilds SET status = 'cancelled', phase = 'cancelled', finished_at = now()
    WHERE status IN ('pending', 'running')
),
broken_off AS (
    UPDATE graph_verifications SET status = 'failed', error = %(reason)s, finished_at = now()
    WHERE status IN ('pending', 'running')
),
doubted AS (
    INSERT INTO graph_states AS s (tenant_id, epoch, doubt, doubted_at)
    SELECT t.tenant_id, 'restored ' || gen_random_uuid(), %(reason)s, now() FROM tenants AS t
    WHERE EXISTS (SELECT 1 FROM graph_states AS g WHERE g.tenant_id = t.tenant_id)
       OR EXISTS (SELECT 1 FROM outbox_events AS o WHERE o.tenant_id = t.tenant_id)
    ON CONFLICT (tenant_id) DO UPDATE
    SET epoch = excluded.epoch, next_epoch = NULL, doubt = excluded.doubt, doubted_at = excluded.doubted_at
    RETURNING tenant_id
)
SELECT t.tenant_id, t.name, d.tenant_id IS NOT NULL AS graph
FROM tenants AS t LEFT JOIN doubted AS d ON d.tenant_id = t.tenant_id
WHERE t.tenant_id <> '00000000-0000-0000-0000-000000000000'
ORDER BY t.name, t.created_at, t.tenant_id
