-- A run of a period, unless that has one.
INSERT INTO cycle_runs (tenant_id, id, cycle, period, moment, dry_run, token_id, role)
VALUES (%(tenant_id)s, %(id)s, %(cycle)s, %(period)s, %(moment)s, %(dry_run)s, %(token_id)s, %(role)s)
ON CONFLICT (tenant_id, cycle, period) WHERE NOT dry_run AND status <> 'undone' DO NOTHING
RETURNING id
