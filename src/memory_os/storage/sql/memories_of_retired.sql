-- The next active memories, by id, of some labels that refer to an entity whose time is over, and to no living one as
-- firmly; or which of certain ones those are. What is archived is out of everybody's sight at once, and nobody looks after
-- it at night: in doubt it stays.
--
-- A memory refers to an entity firmly where somebody said so: by a typed edge that leads from the memory to the entity, or
-- by a link of the entity to it. It refers to it loosely where its text mentions a declared entity.
-- * An edge that leads from the entity to the memory is the entity's word: what a retired thing blocks, enables or has
--   caused is not over with it. SUPERSEDES, EVOLVED_INTO and DUPLICATES tell what came before and after, EXTRACTED_FROM
--   where something was read: what takes the place of a retired thing must outlast it.
-- * An entity's time is over where it is retired, and for what it is linked to, where its link has ended. A link that was
--   ended for another, of the same entity or of the one that has taken its place, leaves the memory with a living one.
-- * A living entity keeps the memory: by an edge in either direction, or a link that has not ended; against a mere
--   mention of a retired one, by a mention of its own. "We moved from Kettle to Stove" stays when Kettle is retired; what
--   is filed under Kettle goes, whoever else it names. Derived entities keep nothing by a mention: any name is one.
-- * An entity that not all readers of the memory may know speaks neither for nor against it: nobody's private list of
--   retired things takes a memory away from others.
-- * Where entities were merged, edges, links and mentions are with the one that is left, and its status is what counts.
--
-- Edges that the run itself has pruned still count: nothing in a run depends on what the run has changed.
WITH claims AS NOT MATERIALIZED (
    SELECT source_memory_id, source_entity_id, target_memory_id, target_entity_id FROM edges
    WHERE tenant_id = %(tenant_id)s AND type <> ALL (%(apart)s::text[])
    UNION ALL
    SELECT g.source_memory_id, g.source_entity_id, g.target_memory_id, g.target_entity_id FROM archived_edges AS g
    WHERE g.tenant_id = %(tenant_id)s AND g.type <> ALL (%(apart)s::text[])
      AND EXISTS (SELECT 1 FROM cycle_actions AS a
                  WHERE a.tenant_id = g.tenant_id AND a.target_id = g.id AND a.run_id = %(run_id)s
                    AND a.rule = 'prune_edges' AND a.undone_at IS NULL)
),
retired AS MATERIALIZED (
    SELECT id FROM entities WHERE tenant_id = %(tenant_id)s AND status = 'retired'
),
past AS (
    SELECT c.source_memory_id AS memory_id, r.id AS entity_id, true AS firm
    FROM retired AS r JOIN claims AS c ON c.target_entity_id = r.id
    UNION ALL
    SELECT l.target_memory_id, r.id, true
    FROM retired AS r JOIN entity_links AS l ON l.tenant_id = %(tenant_id)s AND l.entity_id = r.id
    WHERE l.target_memory_id IS NOT NULL
    UNION ALL
    SELECT l.target_memory_id, l.entity_id, true FROM entity_links AS l
    WHERE l.tenant_id = %(tenant_id)s AND l.target_memory_id IS NOT NULL AND l.valid_to <= %(moment)s::timestamptz
    UNION ALL
    SELECT n.memory_id, r.id, false
    FROM retired AS r JOIN mentions AS n ON n.tenant_id = %(tenant_id)s AND n.entity_id = r.id
),
found AS (
    SELECT m.id, bool_or(p.firm) AS firm, (array_agg(p.entity_id ORDER BY p.firm DESC, p.entity_id))[1] AS entity_id
    FROM past AS p
    JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = p.memory_id
    JOIN entities AS e ON e.tenant_id = %(tenant_id)s AND e.id = p.entity_id
    WHERE m.id > %(after)s::uuid AND (%(ids)s::uuid[] IS NULL OR m.id = ANY (%(ids)s::uuid[]))
      AND m.label = ANY (%(labels)s::text[]) AND m.status = 'active' AND m.created_at <= %(moment)s::timestamptz
      AND memory_os_covers(e.visibility, e.user_id, e.reader_users, e.reader_groups,
                           m.visibility, m.user_id, m.reader_users, m.reader_groups)
    GROUP BY m.id
)
SELECT m.id, m.label, m.status, f.entity_id
FROM found AS f JOIN memories AS m ON m.tenant_id = %(tenant_id)s AND m.id = f.id
WHERE NOT EXISTS (
    SELECT 1 FROM (
        SELECT c.target_entity_id AS entity_id FROM claims AS c WHERE c.source_memory_id = m.id
        UNION ALL
        SELECT c.source_entity_id FROM claims AS c WHERE c.target_memory_id = m.id
        UNION ALL
        SELECT l.entity_id FROM entity_links AS l
        WHERE l.tenant_id = m.tenant_id AND l.target_id = m.id AND l.target_memory_id = m.id
          AND (l.valid_to IS NULL OR l.valid_to > %(moment)s::timestamptz)
        UNION ALL
        SELECT n.entity_id FROM mentions AS n JOIN entities AS d ON d.tenant_id = n.tenant_id AND d.id = n.entity_id
        WHERE n.tenant_id = m.tenant_id AND n.memory_id = m.id AND d.declared AND NOT f.firm
    ) AS tie
    JOIN entities AS e ON e.tenant_id = m.tenant_id AND e.id = tie.entity_id
    WHERE e.status = 'active'
      AND memory_os_covers(e.visibility, e.user_id, e.reader_users, e.reader_groups,
                           m.visibility, m.user_id, m.reader_users, m.reader_groups))
ORDER BY m.id LIMIT %(batch)s
