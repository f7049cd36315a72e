-- A run of which nothing stands any more was undone. What is left to a memory's own text (an extraction that was asked
-- for again) is taken back by noting it.
UPDATE cycle_runs AS r SET status = 'undone', undone_at = now()
WHERE r.tenant_id = %(tenant_id)s AND r.id = %(run_id)s AND r.status IN ('done', 'failed') AND NOT r.dry_run
  AND NOT EXISTS (SELECT 1 FROM cycle_actions AS a
                  WHERE a.tenant_id = r.tenant_id AND a.run_id = r.id AND a.undone_at IS NULL)
RETURNING r.id
