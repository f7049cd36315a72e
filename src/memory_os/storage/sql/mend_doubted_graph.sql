-- A repair of a graph that there is doubt about, unless a job is under way, or one has just ended and doubt remained:
-- soon again where the queue was only not done yet.
INSERT INTO graph_verifications (tenant_id, id, repair, requested_by)
SELECT s.tenant_id, %(id)s, true, 'the service: ' || s.doubt FROM graph_states AS s
WHERE s.tenant_id = %(tenant_id)s AND s.doubt IS NOT NULL
  AND NOT EXISTS (
      SELECT 1 FROM graph_verifications AS v
      WHERE v.tenant_id = s.tenant_id AND v.repair AND v.started_at >= s.doubted_at
        AND v.finished_at > now() - CASE WHEN v.missing + v.extra + v.differing > v.repaired THEN interval '5 minutes'
                                         ELSE interval '10 seconds' END)
ON CONFLICT DO NOTHING
