-- Tenants whose graph was compared too long ago, the oldest first; also those whose graph was never written to.
INSERT INTO graph_verifications (tenant_id, id, requested_by)
SELECT t.tenant_id, uuidv7(), 'schedule'
FROM tenants AS t LEFT JOIN graph_states AS s ON s.tenant_id = t.tenant_id
WHERE coalesce(s.verified_at, s.created_at, t.created_at) < now() - %(seconds)s * interval '1 second'
  AND EXISTS (SELECT 1 FROM outbox_events AS o WHERE o.tenant_id = t.tenant_id
              UNION ALL SELECT 1 WHERE s.tenant_id IS NOT NULL
              UNION ALL SELECT 1 FROM graph_verifications AS g WHERE g.tenant_id = t.tenant_id)
  AND NOT EXISTS (
      SELECT 1 FROM graph_verifications AS v
      WHERE v.tenant_id = t.tenant_id AND v.created_at > now() - %(seconds)s * interval '1 second')
ORDER BY coalesce(s.verified_at, s.created_at, t.created_at) LIMIT %(tenants)s
ON CONFLICT DO NOTHING
