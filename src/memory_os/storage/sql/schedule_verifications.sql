-- Graphs whose last comparison is too long ago, the oldest first.
INSERT INTO graph_verifications (tenant_id, id, requested_by)
SELECT s.tenant_id, uuidv7(), 'schedule' FROM graph_states AS s
WHERE coalesce(s.verified_at, s.created_at) < now() - %(seconds)s * interval '1 second'
  AND NOT EXISTS (
      SELECT 1 FROM graph_verifications AS v
      WHERE v.tenant_id = s.tenant_id AND v.created_at > now() - %(seconds)s * interval '1 second')
ORDER BY coalesce(s.verified_at, s.created_at) LIMIT %(tenants)s
ON CONFLICT DO NOTHING
