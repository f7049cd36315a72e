-- What the profiles of some audiences hold at a moment, the strongest first: of a user what is theirs, of all (null) what
-- all of the tenant may read. An entity counts by those of these memories that mention it, and only where its own readers
-- are among them the audience.
WITH audiences AS (
    SELECT given.user_id, given.place FROM unnest(%(users)s::text[]) WITH ORDINALITY AS given (user_id, place)
),
held AS MATERIALIZED (
    SELECT a.place, a.user_id, m.id, m.label, m.confidence, m.created_at
    FROM audiences AS a
    CROSS JOIN LATERAL (
        SELECT o.id, o.label, o.confidence, o.created_at FROM memories AS o
        WHERE o.tenant_id = %(tenant_id)s AND o.user_id = a.user_id AND o.status = 'active'
          AND o.created_at <= %(moment)s::timestamptz
          AND (o.valid_from IS NULL OR o.valid_from <= %(moment)s::timestamptz)
          AND (o.valid_to IS NULL OR o.valid_to > %(moment)s::timestamptz)
        UNION ALL
        SELECT o.id, o.label, o.confidence, o.created_at FROM memories AS o
        WHERE a.user_id IS NULL AND o.tenant_id = %(tenant_id)s AND o.visibility = 'tenant' AND o.status = 'active'
          AND o.created_at <= %(moment)s::timestamptz
          AND (o.valid_from IS NULL OR o.valid_from <= %(moment)s::timestamptz)
          AND (o.valid_to IS NULL OR o.valid_to > %(moment)s::timestamptz)
    ) AS m
),
told AS (
    SELECT h.place, s.section, h.id,
           row_number() OVER (PARTITION BY h.place, s.section ORDER BY h.confidence DESC, h.created_at DESC, h.id) AS rank
    FROM held AS h
    JOIN unnest(%(labels)s::text[], %(sections)s::text[]) AS s (label, section) ON s.label = h.label
),
counted AS (
    SELECT h.place, h.user_id, n.entity_id, count(DISTINCT h.id) AS records, sum(n.occurrences) AS occurrences
    FROM held AS h JOIN mentions AS n ON n.tenant_id = %(tenant_id)s AND n.memory_id = h.id
    GROUP BY h.place, h.user_id, n.entity_id
),
named AS (
    SELECT c.place, e.id,
           row_number() OVER (PARTITION BY c.place ORDER BY c.records DESC, c.occurrences DESC, e.id) AS rank
    FROM counted AS c JOIN entities AS e ON e.tenant_id = %(tenant_id)s AND e.id = c.entity_id
    WHERE e.status = 'active'
      AND (e.visibility = 'tenant' OR e.user_id = c.user_id
           OR (e.visibility = 'restricted' AND c.user_id = ANY (e.reader_users)))
)
SELECT place, section, id FROM (
    SELECT place, section, id, rank FROM told UNION ALL SELECT place, 'entities', id, rank FROM named
) AS found
WHERE rank <= %(longest)s ORDER BY place, section, rank
