-- The memories that a source leaves behind when it goes: those that had living evidence from it, other than what
-- contradicts them. With `orphans`, those of them that have no such evidence from elsewhere; without, all of them and what
-- was derived from them.
WITH RECURSIVE backed AS MATERIALIZED (
    SELECT DISTINCT memory_id AS id FROM evidence
    WHERE tenant_id = %(tenant_id)s AND source_id = %(source_id)s AND withdrawn_at IS NULL AND support <> 'contradicts'
),
derived (id) AS (
    SELECT id FROM backed WHERE NOT %(orphans)s
    UNION
    SELECT g.source_memory_id FROM derived JOIN edges AS g
           ON g.tenant_id = %(tenant_id)s AND g.target_memory_id = derived.id
           AND (g.type = 'EXTRACTED_FROM') IS TRUE  -- no key for an index: there is a better one than that by type
    WHERE g.source_memory_id IS NOT NULL
)
SELECT id FROM derived
UNION
SELECT id FROM backed WHERE %(orphans)s AND NOT EXISTS (
    SELECT 1 FROM evidence AS other
    WHERE other.tenant_id = %(tenant_id)s AND other.memory_id = backed.id AND other.source_id <> %(source_id)s
      AND other.withdrawn_at IS NULL AND other.support <> 'contradicts')
