-- Into what a run has merged some memories, or would, and these in turn, step by step.
WITH RECURSIVE steps AS (
    SELECT a.target_id, a.other_id FROM cycle_actions AS a
    WHERE a.tenant_id = %(tenant_id)s AND a.target_id = ANY (%(ids)s::uuid[]) AND a.run_id = %(run_id)s
      AND a.rule = %(rule)s AND a.undone_at IS NULL
    UNION
    SELECT a.target_id, a.other_id FROM steps AS s
         JOIN cycle_actions AS a ON a.tenant_id = %(tenant_id)s AND a.target_id = s.other_id
    WHERE a.run_id = %(run_id)s AND a.rule = %(rule)s AND a.undone_at IS NULL
)
SELECT target_id, other_id FROM steps
