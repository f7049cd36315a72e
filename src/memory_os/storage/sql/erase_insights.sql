-- Candidates for Insights that were made of what goes, whatever became of them. The Insights go as memories.
WITH gone AS MATERIALIZED (SELECT id FROM unnest(%(memories)s::uuid[]) AS given (id)),
made AS (
    DELETE FROM insight_candidates AS c
    WHERE c.tenant_id = %(tenant_id)s AND c.id IN (
        SELECT i.candidate_id FROM insight_members AS i JOIN gone ON gone.id = i.memory_id
        WHERE i.tenant_id = %(tenant_id)s)
    RETURNING c.id
)
SELECT (SELECT count(*) FROM made) AS insight_candidates,
       (SELECT count(*) FROM insight_members AS i JOIN made ON made.id = i.candidate_id
        WHERE i.tenant_id = %(tenant_id)s) AS insight_members
