-- What was done to these memories and entities after a moment, or was undone after it, the newest first: what it takes to
-- take it back, and the ids of the edges and links that it moved, removed or closed. Read as a steward: it may have been
-- done to a memory that the reader does not see.
WITH acts AS (
    SELECT true AS of_memory, a.id, a.memory_id, a.other_id, a.kind, a.at, a.undone_at, a.detail, a.before
    FROM memory_acts AS a
    WHERE a.tenant_id = %(tenant_id)s
      AND (a.memory_id = ANY (%(memories)s::uuid[]) OR a.other_id = ANY (%(memories)s::uuid[]))
      AND (a.at > %(believed_at)s::timestamptz OR a.undone_at > %(believed_at)s::timestamptz)
    UNION ALL
    SELECT false, a.id, a.entity_id, a.other_id, a.kind, a.at, a.undone_at, a.detail, a.before
    FROM entity_acts AS a
    WHERE a.tenant_id = %(tenant_id)s
      AND (a.entity_id = ANY (%(entities)s::uuid[]) OR a.other_id = ANY (%(entities)s::uuid[]))
      AND (a.at > %(believed_at)s::timestamptz OR a.undone_at > %(believed_at)s::timestamptz)
)
SELECT a.of_memory, a.id, a.memory_id, a.other_id, a.kind, a.at, a.undone_at, a.before -> 'memories' AS states,
       CASE WHEN a.of_memory AND a.kind = 'change' THEN a.detail -> 'before' END AS changed,
       CASE WHEN a.of_memory THEN a.before -> 'confidence' END AS confidence,
       a.before -> 'audiences' AS audiences, a.detail ->> 'act_id' AS undone,
       jsonb_path_query_array(a.before, '$.edges.moved[*].id') || jsonb_path_query_array(a.before, '$.edges.removed[*].id')
       || jsonb_path_query_array(a.before, '$.edges.merged[*].gone.id')
       || jsonb_path_query_array(a.before, '$.edges.collapsed[*].gone[*].id')
       || jsonb_path_query_array(a.before, '$.edges.looped[*].id')
       || jsonb_path_query_array(a.before, '$.ties.closed[*].id')
       || jsonb_path_query_array(a.before, '$.links.moved[*].id')
       || jsonb_path_query_array(a.before, '$.links.collapsed[*].gone[*].id')
       || jsonb_path_query_array(a.before, '$.links.looped[*].id') AS concerned
FROM acts AS a
ORDER BY a.at DESC, a.id DESC
