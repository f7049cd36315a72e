-- Memories that were derived from these while they were being locked. Once they are, nobody can tie one more to them.
SELECT e.source_memory_id AS id FROM unnest(%(memories)s::uuid[]) AS gone (id)
JOIN edges AS e ON e.tenant_id = %(tenant_id)s AND e.target_memory_id = gone.id AND e.type = 'EXTRACTED_FROM'
WHERE e.source_memory_id NOT IN (SELECT id FROM unnest(%(memories)s::uuid[]) AS given (id))
UNION
SELECT c.memory_id FROM unnest(%(memories)s::uuid[]) AS gone (id)
JOIN insight_members AS i ON i.tenant_id = %(tenant_id)s AND i.memory_id = gone.id
JOIN insight_candidates AS c ON c.tenant_id = i.tenant_id AND c.id = i.candidate_id
WHERE c.memory_id NOT IN (SELECT id FROM unnest(%(memories)s::uuid[]) AS given (id))
