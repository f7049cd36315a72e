-- Candidates of other runs, whatever became of them, that have one of these memories: their readers and all their members.
SELECT c.visibility, c.user_id, c.reader_users, c.reader_groups, array_agg(i.member_id) AS members
FROM insight_candidates AS c JOIN insight_members AS i ON i.tenant_id = c.tenant_id AND i.candidate_id = c.id
WHERE c.tenant_id = %(tenant_id)s AND c.run_id IS DISTINCT FROM %(run_id)s AND c.id IN (
    SELECT k.candidate_id FROM insight_members AS k
    WHERE k.tenant_id = %(tenant_id)s AND k.memory_id = ANY (%(ids)s::uuid[]))
GROUP BY c.tenant_id, c.id
