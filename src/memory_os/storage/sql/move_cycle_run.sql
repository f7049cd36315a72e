-- A run has made a batch: where it stands now, and at its end, that it is done. What had failed before is made up for.
UPDATE cycle_runs
SET status = CASE WHEN %(rule)s::text IS NULL THEN 'done' ELSE 'running' END, rule = coalesce(%(rule)s, rule),
    cursor = %(cursor)s::jsonb, counts = %(counts)s::jsonb, started_at = coalesce(started_at, now()), error = NULL,
    attempts = 0, retry_at = NULL, finished_at = CASE WHEN %(rule)s::text IS NULL THEN now() END
WHERE tenant_id = %(tenant_id)s AND id = %(run_id)s
