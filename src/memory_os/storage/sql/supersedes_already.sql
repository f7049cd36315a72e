-- Whether a memory supersedes another one already, directly or through others: then the other one can't supersede it.
WITH RECURSIVE older (id) AS (
    SELECT e.target_memory_id FROM edges AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.type = 'SUPERSEDES' AND e.source_memory_id = %(newer)s
      AND e.target_memory_id IS NOT NULL
    UNION
    SELECT e.target_memory_id FROM older JOIN edges AS e
           ON e.tenant_id = %(tenant_id)s AND e.type = 'SUPERSEDES' AND e.source_memory_id = older.id
    WHERE e.target_memory_id IS NOT NULL
)
SELECT EXISTS (SELECT 1 FROM older WHERE id = %(older)s) AS found
