-- The oldest open run of a tenant, unless it failed a moment ago: a pause is for all of them, one at a time.
SELECT oldest.id FROM (
    SELECT r.id, r.retry_at FROM cycle_runs AS r
    WHERE r.tenant_id = %(tenant_id)s AND r.status IN ('waiting', 'running')
    ORDER BY r.created_at, r.id LIMIT 1) AS oldest
WHERE oldest.retry_at IS NULL OR oldest.retry_at <= now()
