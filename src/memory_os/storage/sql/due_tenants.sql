-- Tenants with work that nobody holds, going round from `after` so that a busy one can't starve the others.
-- The recursive steps hop from tenant to tenant along the partial indexes, whatever the length of the queue.
WITH RECURSIVE waiting AS (
    (SELECT tenant_id FROM outbox_events
     WHERE status = 'pending' AND tenant_id > %(after)s ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.tenant_id FROM outbox_events AS o
            WHERE o.status = 'pending' AND o.tenant_id > w.tenant_id ORDER BY o.tenant_id LIMIT 1)
    FROM waiting AS w WHERE w.tenant_id IS NOT NULL
),
abandoned AS (
    (SELECT tenant_id FROM outbox_events
     WHERE status = 'leased' AND tenant_id > %(after)s ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.tenant_id FROM outbox_events AS o
            WHERE o.status = 'leased' AND o.tenant_id > a.tenant_id ORDER BY o.tenant_id LIMIT 1)
    FROM abandoned AS a WHERE a.tenant_id IS NOT NULL
),
due AS (
    SELECT w.tenant_id FROM waiting AS w
    WHERE w.tenant_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM outbox_events AS o
        WHERE o.tenant_id = w.tenant_id AND o.status = 'pending' AND o.available_at <= now())
    UNION
    SELECT a.tenant_id FROM abandoned AS a
    WHERE a.tenant_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM outbox_events AS o
        WHERE o.tenant_id = a.tenant_id AND o.status = 'leased' AND o.lease_until < now())
)
SELECT d.tenant_id FROM due AS d
WHERE NOT EXISTS (
    SELECT 1 FROM projection_leases AS l WHERE l.tenant_id = d.tenant_id AND l.lease_until > now())
ORDER BY d.tenant_id LIMIT %(tenants)s
