-- A tenant's time zone and since when it is there, and the times that it has given to its cycles, with since when.
SELECT t.time_zone, t.created_at, t.status, s.cycle, s.cron, s.enabled, s.updated_at
FROM tenants AS t LEFT JOIN cycle_schedules AS s ON s.tenant_id = t.tenant_id
WHERE t.tenant_id = %(tenant_id)s
