-- Tenants with events that a worker never came back from, and that nobody holds now. The recursive steps hop from tenant
-- to tenant along the partial index.
WITH RECURSIVE abandoned AS (
    (SELECT tenant_id FROM outbox_events WHERE status = 'leased' ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.tenant_id FROM outbox_events AS o
            WHERE o.status = 'leased' AND o.tenant_id > a.tenant_id ORDER BY o.tenant_id LIMIT 1)
    FROM abandoned AS a WHERE a.tenant_id IS NOT NULL
)
SELECT a.tenant_id FROM abandoned AS a
WHERE a.tenant_id IS NOT NULL
  AND EXISTS (SELECT 1 FROM outbox_events AS o
              WHERE o.tenant_id = a.tenant_id AND o.status = 'leased' AND o.lease_until < now())
  AND NOT EXISTS (SELECT 1 FROM projection_leases AS l WHERE l.tenant_id = a.tenant_id AND l.lease_until > now())
ORDER BY a.tenant_id LIMIT %(tenants)s
