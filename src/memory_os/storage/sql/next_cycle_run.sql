-- The run that a tenant's cycles go on with: the oldest open one, held until the end of the transaction, or none if
-- somebody else has it in hand. One at a time in a tenant, whoever asks.
SELECT r.id, r.cycle, r.moment, r.dry_run, r.status, r.rule, r.cursor, r.counts
FROM cycle_runs AS r
WHERE r.tenant_id = %(tenant_id)s AND r.status IN ('waiting', 'running')
  AND (%(run_id)s::uuid IS NULL OR r.id = %(run_id)s::uuid)
  AND pg_try_advisory_xact_lock(hashtextextended('memory_os cycles ' || %(tenant_id)s::text, 0))
ORDER BY r.created_at, r.id LIMIT 1 FOR UPDATE SKIP LOCKED
