-- A job that is put back did not fail: its attempt is given back. A graph that was found right, or has been mended, is
-- beyond the doubt that it was under when this began.
WITH ended AS (
    UPDATE graph_verifications
    SET status = %(status)s, phase = %(phase)s, error = %(error)s, damage = %(damage)s, parts = %(parts)s::jsonb,
        missing = %(missing)s, extra = %(extra)s, differing = %(differing)s, waiting = %(waiting)s, dead = %(dead)s,
        repaired = %(repaired)s, sample = %(sample)s::jsonb,
        attempts = attempts - (%(status)s = 'pending')::int,
        finished_at = CASE WHEN %(status)s IN ('done', 'failed') THEN now() END
    WHERE tenant_id = %(tenant_id)s AND id = %(id)s AND status = 'running' AND attempts = %(attempt)s
    RETURNING tenant_id, status, damage, missing + extra + differing - repaired + waiting AS left_over, started_at
)
UPDATE graph_states AS s
SET verified_at = now(),
    doubt = CASE WHEN e.left_over = 0 AND s.doubted_at <= e.started_at AND s.doubt = %(mended)s THEN NULL
                 ELSE s.doubt END,
    doubted_at = CASE WHEN e.left_over = 0 AND s.doubted_at <= e.started_at AND s.doubt = %(mended)s THEN NULL
                      ELSE s.doubted_at END
FROM ended AS e WHERE s.tenant_id = e.tenant_id AND e.status = 'done' AND e.damage IS NULL
