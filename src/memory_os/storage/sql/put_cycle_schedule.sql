-- The times of a tenant's cycles; what stays as it was keeps since when it is so.
INSERT INTO cycle_schedules (tenant_id, id, cycle, cron, enabled)
SELECT %(tenant_id)s, given.id, given.cycle, given.cron, given.enabled
FROM unnest(%(ids)s::uuid[], %(cycles)s::text[], %(crons)s::text[], %(enabled)s::boolean[])
     AS given (id, cycle, cron, enabled)
ON CONFLICT (tenant_id, cycle) DO UPDATE SET cron = excluded.cron, enabled = excluded.enabled, updated_at = now()
WHERE (cycle_schedules.cron, cycle_schedules.enabled) IS DISTINCT FROM (excluded.cron, excluded.enabled)
