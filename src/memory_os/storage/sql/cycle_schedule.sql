-- A tenant's time zone and since when it is there, and the cycles that it has put to times of its own or switched off.
SELECT t.time_zone, t.created_at, t.status, s.cycle, s.cron, s.enabled
FROM tenants AS t LEFT JOIN cycle_schedules AS s ON s.tenant_id = t.tenant_id
WHERE t.tenant_id = %(tenant_id)s
