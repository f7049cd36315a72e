-- A run of a period, unless that has one. Where it is only owed, one that was undone counts: it was taken back on purpose.
INSERT INTO cycle_runs (tenant_id, id, cycle, period, moment, dry_run, token_id, role)
SELECT %(tenant_id)s, %(id)s, %(cycle)s, %(period)s, %(moment)s, %(dry_run)s, %(token_id)s, %(role)s
WHERE %(again)s OR NOT EXISTS (
    SELECT 1 FROM cycle_runs AS r
    WHERE r.tenant_id = %(tenant_id)s AND r.cycle = %(cycle)s AND r.period = %(period)s AND NOT r.dry_run)
ON CONFLICT (tenant_id, cycle, period) WHERE NOT dry_run AND status <> 'undone' DO NOTHING
RETURNING id
