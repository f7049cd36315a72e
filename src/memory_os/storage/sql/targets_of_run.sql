-- Which of these a run has acted on by another rule. Edges of memories of which one has merged into the other count among
-- them: they may have become one with others, and where that is only predicted they have not.
WITH merged AS MATERIALIZED (
    SELECT unnest(ARRAY[target_id, other_id]) AS id FROM cycle_actions
    WHERE tenant_id = %(tenant_id)s AND run_id = %(run_id)s AND rule = 'merge_duplicates' AND rule <> %(rule)s
)
SELECT target_id FROM cycle_actions
WHERE tenant_id = %(tenant_id)s AND run_id = %(run_id)s AND rule <> %(rule)s AND target_id = ANY (%(ids)s::uuid[])
UNION
SELECT id FROM edges
WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s::uuid[])
  AND (source_memory_id IN (SELECT id FROM merged) OR target_memory_id IN (SELECT id FROM merged))
