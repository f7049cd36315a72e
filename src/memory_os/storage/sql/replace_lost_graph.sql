-- The tenant's graph is lost or damaged: readers are told, and a rebuild is asked for, unless one is on its way or has
-- just failed.
WITH doubted AS (
    UPDATE graph_states SET doubt = %(reason)s, doubted_at = coalesce(doubted_at, now())
    WHERE tenant_id = %(tenant_id)s
    RETURNING tenant_id
)
INSERT INTO graph_rebuilds (tenant_id, id, requested_by)
SELECT d.tenant_id, %(id)s, 'the service: ' || %(reason)s FROM doubted AS d
WHERE NOT EXISTS (
    SELECT 1 FROM graph_rebuilds AS r
    WHERE r.tenant_id = d.tenant_id AND r.status = 'failed' AND r.finished_at > now() - interval '5 minutes')
ON CONFLICT DO NOTHING
RETURNING id
