-- The last actions of a run that stand, the last one first.
SELECT id, number, rule, target_kind, target_id, other_id, before, after, act_id FROM cycle_actions
WHERE tenant_id = %(tenant_id)s AND run_id = %(run_id)s AND undone_at IS NULL AND number < %(below)s
ORDER BY number DESC LIMIT %(batch)s
