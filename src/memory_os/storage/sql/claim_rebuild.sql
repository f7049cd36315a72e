-- The oldest job that waits, or whose worker has gone silent; one that five workers never came back from has failed.
WITH next AS MATERIALIZED (
    SELECT tenant_id, id FROM graph_rebuilds
    WHERE status = 'pending' OR (status = 'running' AND heartbeat_at < now() - %(silent_s)s * interval '1 second')
    ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE graph_rebuilds AS r
SET status = CASE WHEN r.attempts >= 5 THEN 'failed' ELSE 'running' END,
    finished_at = CASE WHEN r.attempts >= 5 THEN now() END,
    error = CASE WHEN r.attempts >= 5 THEN 'five workers took it and none came back' END,
    attempts = r.attempts + 1,
    phase = 'starting', processed = 0, total = 0,
    started_at = coalesce(r.started_at, now()), heartbeat_at = now()
FROM next WHERE r.tenant_id = next.tenant_id AND r.id = next.id
RETURNING r.tenant_id, r.id, r.user_id, r.max_memories, r.allow_partial, r.request_id, r.status, r.attempts
