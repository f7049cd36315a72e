-- The oldest job that waits, or whose worker has gone silent; one that five workers never came back from has failed.
WITH next AS MATERIALIZED (
    SELECT tenant_id, id FROM graph_verifications
    WHERE status = 'pending' OR (status = 'running' AND heartbeat_at < now() - %(silent_s)s * interval '1 second')
    ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE graph_verifications AS v
SET status = CASE WHEN v.attempts >= 5 THEN 'failed' ELSE 'running' END,
    finished_at = CASE WHEN v.attempts >= 5 THEN now() END,
    error = CASE WHEN v.attempts >= 5 THEN 'five workers took it and none came back' END,
    attempts = v.attempts + 1,
    phase = 'starting', checked = 0, total = 0,
    started_at = coalesce(v.started_at, now()), heartbeat_at = now()
FROM next WHERE v.tenant_id = next.tenant_id AND v.id = next.id
RETURNING v.tenant_id, v.id, v.repair, v.attempts, v.status
