-- After entities were declared, renamed, aliased, merged or deleted: the memories whose mentions no longer say what the
-- names say have their mark of extraction emptied and get an event, so that they are extracted and projected anew like
-- any other.
WITH own_names AS MATERIALIZED (
    SELECT * FROM unnest(
        %(entity_ids)s::uuid[], %(names)s::text[], %(queries)s::text[], %(whole)s::int[]
    ) AS given (entity_id, canonical_name, query, whole)
),
-- mentions of the entities under names that they do not have (any more); for a deleted one that is all of them. A derived
-- one has no declared names, and its mentions are right as long as it is there. A declared one is mentioned by what its
-- own readers may read, and by nothing else.
misnamed AS (
    SELECT m.memory_id FROM mentions AS m
    JOIN entities AS e ON e.tenant_id = %(tenant_id)s AND e.id = m.entity_id AND e.declared
    JOIN memories AS s ON s.tenant_id = %(tenant_id)s AND s.id = m.memory_id
    WHERE m.tenant_id = %(tenant_id)s AND m.entity_id = ANY (%(ids)s)
      AND NOT memory_os_covers(e.visibility, e.user_id, e.reader_users, e.reader_groups,
                               s.visibility, s.user_id, s.reader_users, s.reader_groups)
    UNION ALL
    SELECT m.memory_id FROM mentions AS m
    WHERE m.tenant_id = %(tenant_id)s AND m.entity_id = ANY (%(ids)s)
      AND NOT EXISTS (SELECT 1 FROM own_names AS n
                      WHERE n.entity_id = m.entity_id AND n.canonical_name = m.canonical_name)
      AND NOT EXISTS (SELECT 1 FROM entities AS e
                      WHERE e.tenant_id = %(tenant_id)s AND e.id = m.entity_id AND NOT e.declared)
),
-- mentions of one of their names that point at another entity
misdirected AS (
    SELECT m.memory_id FROM own_names AS n
    JOIN mentions AS m ON m.tenant_id = %(tenant_id)s AND m.canonical_name = n.canonical_name
    JOIN entities AS e ON e.tenant_id = %(tenant_id)s AND e.id = n.entity_id
    JOIN memories AS s ON s.tenant_id = %(tenant_id)s AND s.id = m.memory_id
    WHERE m.entity_id <> n.entity_id
      AND memory_os_covers(e.visibility, e.user_id, e.reader_users, e.reader_groups,
                           s.visibility, s.user_id, s.reader_users, s.reader_groups)
),
-- mentions of a name that several had, so that nobody was meant, and that only one has now: the one who lost it does not
-- tell which it was
freed AS (
    SELECT m.memory_id FROM entity_names AS n
    JOIN entities AS d ON d.tenant_id = %(tenant_id)s AND d.canonical_name = n.canonical_name
         AND NOT d.declared AND d.mention_records > 0
    JOIN mentions AS m ON m.tenant_id = %(tenant_id)s AND m.entity_id = d.id AND m.canonical_name = n.canonical_name
    JOIN entities AS e ON e.tenant_id = %(tenant_id)s AND e.id = n.entity_id
    JOIN memories AS s ON s.tenant_id = %(tenant_id)s AND s.id = m.memory_id
    WHERE n.tenant_id = %(tenant_id)s
      AND memory_os_covers(e.visibility, e.user_id, e.reader_users, e.reader_groups,
                           s.visibility, s.user_id, s.reader_users, s.reader_groups)
      AND NOT EXISTS (SELECT 1 FROM entity_names AS o
                      WHERE o.tenant_id = %(tenant_id)s AND o.canonical_name = n.canonical_name
                        AND o.entity_id <> n.entity_id)
),
-- and mentions of a name that several had and that nobody has now: these are as sure as a declared name's, and no name is
-- left to find them by
orphaned AS (
    SELECT m.memory_id FROM entities AS d
    JOIN mentions AS m ON m.tenant_id = %(tenant_id)s AND m.entity_id = d.id AND m.confidence >= 1
    WHERE d.tenant_id = %(tenant_id)s AND NOT d.declared AND d.mention_confidence >= 1
      AND NOT EXISTS (SELECT 1 FROM entity_names AS n
                      WHERE n.tenant_id = %(tenant_id)s AND n.canonical_name = m.canonical_name)
),
-- texts with one of their names that the extractor passed over while nobody had declared it; all texts with it where
-- capitals decide what it means
unmentioned AS (
    SELECT s.id AS memory_id FROM own_names AS n
    JOIN memories AS s ON s.tenant_id = %(tenant_id)s AND s.search @@ to_tsquery('simple', n.query)
    JOIN entities AS e ON e.tenant_id = %(tenant_id)s AND e.id = n.entity_id
    WHERE memory_os_covers(e.visibility, e.user_id, e.reader_users, e.reader_groups,
                           s.visibility, s.user_id, s.reader_users, s.reader_groups)
      AND (n.whole = 1 OR NOT EXISTS (SELECT 1 FROM mentions AS m
                                      WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = s.id
                                        AND m.canonical_name = n.canonical_name))
),
-- One that waits to be extracted anyway will be extracted by the names as they are now.
again AS MATERIALIZED (
    SELECT found.memory_id FROM (
        SELECT memory_id FROM misnamed UNION SELECT memory_id FROM misdirected
        UNION SELECT memory_id FROM freed UNION SELECT memory_id FROM orphaned UNION SELECT memory_id FROM unmentioned
    ) AS found
    WHERE EXISTS (SELECT 1 FROM extractions AS x
                  WHERE x.tenant_id = %(tenant_id)s AND x.memory_id = found.memory_id AND x.extractor <> '')
       OR NOT EXISTS (SELECT 1 FROM outbox_events AS o
                      WHERE o.tenant_id = %(tenant_id)s AND o.aggregate_id = found.memory_id
                        AND o.aggregate_type = 'memory' AND o.status = 'pending')
),
unmarked AS (
    UPDATE extractions AS x SET extractor = '' FROM again AS a
    WHERE x.tenant_id = %(tenant_id)s AND x.memory_id = a.memory_id
)
INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, request_id)
SELECT %(tenant_id)s, 'GRAPH_UPSERT', 'memory', m.id, m.version, %(request_id)s
FROM memories AS m JOIN again AS a ON a.memory_id = m.id
WHERE m.tenant_id = %(tenant_id)s
