-- The moment of the last run of a cycle before another moment that came to its end and stands.
SELECT max(moment) AS moment FROM cycle_runs
WHERE tenant_id = %(tenant_id)s AND cycle = %(cycle)s AND status = 'done' AND NOT dry_run
  AND moment < %(moment)s::timestamptz
