-- Memories with all that was derived from them, however often over, held until the end of the transaction.
WITH RECURSIVE gone (id) AS (
    SELECT id FROM unnest(%(memories)s::uuid[]) AS given (id)
    UNION
    SELECT e.source_memory_id FROM gone
    JOIN edges AS e ON e.tenant_id = %(tenant_id)s AND e.target_memory_id = gone.id AND e.type = 'EXTRACTED_FROM'
    WHERE e.source_memory_id IS NOT NULL
)
SELECT m.id, m.version, m.created_at FROM memories AS m
WHERE m.tenant_id = %(tenant_id)s AND m.id IN (SELECT id FROM gone) ORDER BY m.id FOR UPDATE
