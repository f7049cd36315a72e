-- Which of these a run has acted on by another rule.
SELECT DISTINCT target_id FROM cycle_actions
WHERE tenant_id = %(tenant_id)s AND run_id = %(run_id)s AND rule <> %(rule)s AND target_id = ANY (%(ids)s::uuid[])
