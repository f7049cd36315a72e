-- The candidate that an action of a run has made, and what became of it, held until the end of the transaction. A later run
-- may have given the same id to one of the same members.
SELECT c.status, c.memory_id FROM insight_candidates AS c
WHERE c.tenant_id = %(tenant_id)s AND c.id = %(id)s AND c.run_id = (
    SELECT a.run_id FROM cycle_actions AS a WHERE a.tenant_id = %(tenant_id)s AND a.id = %(action_id)s)
FOR UPDATE OF c
