-- The records that hold a text of function words alone ("The Who") as a phrase of its exact words, from two words on.
-- Such words have no postings, so the records themselves are looked at: the newest `most` of each list that the reader
-- sees. Each of them has one posting of impact 0, whose term is that of the empty word. (The limit is a column and no
-- constant: for a number the planner would rather sort a whole list, which it takes for a short one.)
WITH phrase AS MATERIALIZED (
    SELECT phraseto_tsquery('simple', %(text)s) AS words WHERE length(to_tsvector('simple', %(text)s)) > 1
),
lists AS MATERIALIZED (
    SELECT memory_os_term(memory_os_scope(reader, past), '') AS term, %(most)s::int AS most
    FROM unnest(%(readers)s::text[]) AS reader CROSS JOIN unnest(%(pasts)s::boolean[]) AS past
    WHERE EXISTS (SELECT 1 FROM phrase)
),
newest AS MATERIALIZED (
    SELECT DISTINCT p.kind, p.record_id
    FROM lists AS l CROSS JOIN LATERAL (
        SELECT q.kind, q.record_id FROM postings AS q
        WHERE q.tenant_id = %(tenant_id)s AND q.term = l.term
        ORDER BY q.impact DESC, q.record_id DESC, q.kind DESC
        LIMIT l.most
    ) AS p
),
hits AS (
    SELECT 'memory' AS type, b.record_id, r.search FROM newest AS b CROSS JOIN LATERAL (
        SELECT m.search FROM memories AS m
        WHERE m.tenant_id = %(tenant_id)s AND m.id = b.record_id AND m.search @@ (SELECT words FROM phrase)
          AND coalesce(m.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
          AND (%(history)s::boolean
               OR (m.status IN ('active', 'completed', 'abandoned', 'disputed')
                   AND coalesce(m.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
               OR (m.status IN ('superseded', 'expired')
                   AND m.valid_to > coalesce(%(as_of)s::timestamptz, now())))
        OFFSET 0
    ) AS r WHERE b.kind = 1
    UNION ALL
    SELECT 'observation', b.record_id, r.search FROM newest AS b CROSS JOIN LATERAL (
        SELECT o.search FROM observations AS o
        WHERE o.tenant_id = %(tenant_id)s AND o.id = b.record_id AND o.search @@ (SELECT words FROM phrase)
          AND (%(history)s::boolean OR o.status = 'active')
        OFFSET 0
    ) AS r WHERE b.kind = 2
    UNION ALL
    SELECT 'procedure', b.record_id, r.search FROM newest AS b CROSS JOIN LATERAL (
        SELECT p.search FROM procedures AS p
        WHERE p.tenant_id = %(tenant_id)s AND p.id = b.record_id AND p.search @@ (SELECT words FROM phrase)
          AND (%(history)s::boolean OR p.status = 'active')
        OFFSET 0
    ) AS r WHERE b.kind = 3
    UNION ALL
    SELECT 'outcome', b.record_id, r.search FROM newest AS b CROSS JOIN LATERAL (
        SELECT o.search FROM outcomes AS o
        WHERE o.tenant_id = %(tenant_id)s AND o.id = b.record_id AND o.search @@ (SELECT words FROM phrase)
          AND (%(history)s::boolean OR o.status = 'active')
        OFFSET 0
    ) AS r WHERE b.kind = 4
    UNION ALL
    SELECT 'entity', b.record_id, r.search FROM newest AS b CROSS JOIN LATERAL (
        SELECT e.search FROM entities AS e
        WHERE e.tenant_id = %(tenant_id)s AND e.id = b.record_id AND e.declared
          AND e.search @@ (SELECT words FROM phrase) AND (%(history)s::boolean OR e.status = 'active')
        OFFSET 0
    ) AS r WHERE b.kind = 5
    UNION ALL
    SELECT 'passage', b.record_id, r.search FROM newest AS b CROSS JOIN LATERAL (
        SELECT p.search, p.source_id FROM passages AS p
        WHERE p.tenant_id = %(tenant_id)s AND p.id = b.record_id AND p.search @@ (SELECT words FROM phrase)
        OFFSET 0
    ) AS r CROSS JOIN LATERAL (
        SELECT 1 FROM sources AS s
        WHERE s.tenant_id = %(tenant_id)s AND s.id = r.source_id
          AND coalesce(s.source_date, s.created_at) <= coalesce(%(as_of)s::timestamptz, now())
        OFFSET 0
    ) AS dated WHERE b.kind = 6
)
SELECT type, record_id AS id, ts_rank(search, (SELECT words FROM phrase))::float8 AS rank
FROM hits ORDER BY rank DESC, id LIMIT %(limit)s
