-- Memories that nothing but these sources bears out. What contradicts a claim does not bear it out.
WITH borne AS (
    SELECT DISTINCT e.memory_id FROM evidence AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.source_id = ANY (%(sources)s::uuid[]) AND e.withdrawn_at IS NULL
      AND e.support IN ('states', 'supports', 'mentions')
)
SELECT b.memory_id AS id FROM borne AS b
WHERE NOT EXISTS (
    SELECT 1 FROM evidence AS o
    WHERE o.tenant_id = %(tenant_id)s AND o.memory_id = b.memory_id AND o.withdrawn_at IS NULL
      AND o.support IN ('states', 'supports', 'mentions') AND NOT o.source_id = ANY (%(sources)s::uuid[]))
