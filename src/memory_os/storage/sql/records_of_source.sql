-- Records that have to do with a source, newest first: memories with living evidence from it, those derived from them,
-- and entities linked to it. Of a memory that is both, the evidence is told. What was derived from a memory that the source
-- contradicts was not taken from it.
WITH RECURSIVE ranks (support, rank) AS (
    VALUES ('states', 1), ('supports', 2), ('mentions', 3), ('contradicts', 4)
),
backed AS MATERIALIZED (
    SELECT e.memory_id AS id, min(ranks.rank) AS rank FROM evidence AS e JOIN ranks USING (support)
    WHERE e.tenant_id = %(tenant_id)s AND e.source_id = %(source_id)s AND e.withdrawn_at IS NULL
    GROUP BY e.memory_id
),
derived (id) AS (
    SELECT id FROM backed WHERE rank < 4
    UNION
    SELECT g.source_memory_id FROM derived JOIN edges AS g
           ON g.tenant_id = %(tenant_id)s AND g.target_memory_id = derived.id
           AND (g.type = 'EXTRACTED_FROM') IS TRUE  -- no key for an index: there is a better one than that by type
    WHERE g.source_memory_id IS NOT NULL
),
found AS MATERIALIZED (
    SELECT id, min(rank) AS rank FROM (SELECT id, rank FROM backed UNION ALL SELECT id, NULL FROM derived) AS both_ways
    GROUP BY id
),
records AS (
    SELECT 'memory' AS type, m.id, m.label, m.text, m.status, m.created_at AS at, m.id AS key,
           CASE WHEN found.rank IS NULL THEN 'derived' ELSE 'evidence' END AS via, ranks.support,
           NULL::uuid AS link_id, NULL AS relationship
    FROM found JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = found.id
    LEFT JOIN ranks ON ranks.rank = found.rank
    UNION ALL
    SELECT 'entity', n.id, n.entity_type, n.name, n.status, l.created_at, l.id, 'link', NULL, l.id, l.relationship
    FROM entity_links AS l JOIN entities AS n ON n.tenant_id = %(tenant_id)s AND n.id = l.entity_id
    WHERE l.tenant_id = %(tenant_id)s AND l.target_source_id = %(source_id)s
)
SELECT * FROM records
WHERE %(after_at)s::timestamptz IS NULL OR (at, key) < (%(after_at)s::timestamptz, %(after_key)s::uuid)
ORDER BY at DESC, key DESC LIMIT %(page)s
