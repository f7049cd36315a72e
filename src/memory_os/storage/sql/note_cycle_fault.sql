-- A batch of a run has failed: it keeps its place and is tried again after a pause that grows, or has failed for good.
UPDATE cycle_runs
SET attempts = attempts + 1, error = %(error)s, started_at = coalesce(started_at, now()),
    status = CASE WHEN attempts + 1 >= %(most)s THEN 'failed' ELSE 'running' END,
    retry_at = CASE WHEN attempts + 1 < %(most)s
                    THEN now() + (%(pauses)s::float8[])[attempts + 1] * interval '1 second' END,
    finished_at = CASE WHEN attempts + 1 >= %(most)s THEN now() END
WHERE tenant_id = %(tenant_id)s AND id = %(run_id)s AND status IN ('waiting', 'running')
RETURNING attempts, status, retry_at
