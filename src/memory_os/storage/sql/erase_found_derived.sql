-- Memories that were derived from these while they were being locked. Once they are, nobody can tie one more to them.
SELECT DISTINCT e.source_memory_id AS id FROM unnest(%(memories)s::uuid[]) AS gone (id)
JOIN edges AS e ON e.tenant_id = %(tenant_id)s AND e.target_memory_id = gone.id AND e.type = 'EXTRACTED_FROM'
WHERE e.source_memory_id NOT IN (SELECT id FROM unnest(%(memories)s::uuid[]) AS given (id))
