-- Memories with all that was derived from them, however often over, held until the end of the transaction.
WITH RECURSIVE gone (id) AS (
    SELECT id FROM unnest(%(memories)s::uuid[]) AS given (id)
    UNION
    SELECT made.id FROM gone CROSS JOIN LATERAL (
        SELECT e.source_memory_id AS id FROM edges AS e
        WHERE e.tenant_id = %(tenant_id)s AND e.target_memory_id = gone.id AND e.type = 'EXTRACTED_FROM'
          AND e.source_memory_id IS NOT NULL
        UNION ALL
        SELECT c.memory_id FROM insight_members AS i
        JOIN insight_candidates AS c ON c.tenant_id = i.tenant_id AND c.id = i.candidate_id
        WHERE i.tenant_id = %(tenant_id)s AND i.memory_id = gone.id AND c.memory_id IS NOT NULL
    ) AS made
)
SELECT m.id, m.version, m.created_at FROM memories AS m
WHERE m.tenant_id = %(tenant_id)s AND m.id IN (SELECT id FROM gone) ORDER BY m.id FOR UPDATE
