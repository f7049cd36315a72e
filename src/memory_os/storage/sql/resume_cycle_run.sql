-- A run that failed goes on from where it stands.
UPDATE cycle_runs
SET status = 'running', attempts = 0, retry_at = NULL, finished_at = NULL
WHERE tenant_id = %(tenant_id)s AND id = %(run_id)s AND status = 'failed'
RETURNING id
