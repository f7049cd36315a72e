-- A job that is put back did not fail: its attempt is given back.
WITH ended AS (
    UPDATE graph_rebuilds
    SET status = %(status)s, phase = %(phase)s, error = %(error)s, truncated = %(truncated)s,
        attempts = attempts - (%(status)s = 'pending')::int,
        finished_at = CASE WHEN %(status)s IN ('done', 'failed') THEN now() END
    WHERE tenant_id = %(tenant_id)s AND id = %(id)s AND status = 'running' AND attempts = %(attempt)s
    RETURNING tenant_id, status, user_id
)
-- A whole graph was put in the place of the one that there was doubt about.
UPDATE graph_states AS s SET doubt = NULL, doubted_at = NULL
FROM ended AS e WHERE s.tenant_id = e.tenant_id AND e.status = 'done' AND e.user_id IS NULL AND s.doubt IS NOT NULL
