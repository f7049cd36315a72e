UPDATE graph_rebuilds
SET status = %(status)s, phase = %(phase)s, error = %(error)s, truncated = %(truncated)s,
    finished_at = CASE WHEN %(status)s IN ('done', 'failed') THEN now() END
WHERE tenant_id = %(tenant_id)s AND id = %(id)s AND status = 'running'
