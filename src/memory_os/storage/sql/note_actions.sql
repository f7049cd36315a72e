-- What a run has done, or would do, numbered on from what it did before.
INSERT INTO cycle_actions (tenant_id, id, run_id, number, rule, target_kind, target_id, other_id, before, after, act_id)
SELECT %(tenant_id)s, given.id, %(run_id)s,
       (SELECT coalesce(max(a.number), 0) FROM cycle_actions AS a
        WHERE a.tenant_id = %(tenant_id)s AND a.run_id = %(run_id)s) + given.place,
       %(rule)s, given.target_kind, given.target_id, given.other_id, given.before, given.after, given.act_id
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
    id uuid, place int, target_kind text, target_id uuid, other_id uuid, before jsonb, after jsonb, act_id uuid)
