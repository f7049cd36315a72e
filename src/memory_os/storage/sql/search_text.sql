-- The records in which the words of a question weigh most (BM25), best first: memories, business records, declared
-- entities and passages. `lexemes`, `rarities`, `most` and `cut` are what `plan_reads` made of the question.
--
-- Of each word and each list that the reader sees, the postings of the greatest impact are read, so that the cost has a
-- bound whatever the number of records. What a word whose list was cut weighs in the best of those found is then read
-- from their vectors, and the time asked about is held against their rows.
--
-- Of entities only declared ones have postings: a derived one has nothing but the name that its memories have too.
--
-- Weights are summed as integers (millionths): a sum of floats depends on the order in which rows are read.
--
-- `shared` is how many of the words a hit has.
WITH words AS MATERIALIZED (
    SELECT lexeme, rarity, most, cut, 1 << (place::int - 1) AS bit,
           ('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''')::tsquery AS word
    FROM unnest(%(lexemes)s::text[], %(rarities)s::float8[], %(most)s::int[], %(cut)s::boolean[])
         WITH ORDINALITY AS given (lexeme, rarity, most, cut, place)
),
scopes AS MATERIALIZED (
    SELECT memory_os_scope(reader, past) AS scope
    FROM unnest(%(readers)s::text[]) AS reader CROSS JOIN unnest(%(pasts)s::boolean[]) AS past
),
lists AS MATERIALIZED (
    SELECT memory_os_term(s.scope, w.lexeme) AS term, w.most, w.bit, w.rarity FROM words AS w CROSS JOIN scopes AS s
),
read AS (
    SELECT p.kind, p.record_id, l.bit, (l.rarity * p.impact * 1000000)::int AS weight
    FROM lists AS l CROSS JOIN LATERAL (
        SELECT q.kind, q.record_id, q.impact FROM postings AS q
        WHERE q.tenant_id = %(tenant_id)s AND q.term = l.term
        ORDER BY q.impact DESC, q.record_id DESC, q.kind DESC
        LIMIT l.most
    ) AS p
),
best AS MATERIALIZED (
    SELECT kind, record_id, sum(weight) AS weight, bit_or(bit) AS bits
    -- A record that several of the reader's groups may read is in several lists.
    FROM (SELECT DISTINCT kind, record_id, bit, weight FROM read) AS once
    GROUP BY kind, record_id
    ORDER BY weight DESC, record_id
    LIMIT %(candidates)s
),
alive AS MATERIALIZED (
    SELECT 'memory' AS type, b.*, r.search FROM best AS b CROSS JOIN LATERAL (
        SELECT m.search FROM memories AS m
        WHERE m.tenant_id = %(tenant_id)s AND m.id = b.record_id
          AND coalesce(m.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
          AND (%(history)s::boolean
               OR (m.status IN ('active', 'completed', 'abandoned', 'disputed')
                   AND coalesce(m.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
               OR (m.status IN ('superseded', 'expired')
                   AND m.valid_to > coalesce(%(as_of)s::timestamptz, now())))
        OFFSET 0
    ) AS r WHERE b.kind = 1
    UNION ALL
    SELECT 'observation', b.*, r.search FROM best AS b CROSS JOIN LATERAL (
        SELECT o.search FROM observations AS o
        WHERE o.tenant_id = %(tenant_id)s AND o.id = b.record_id AND (%(history)s::boolean OR o.status = 'active')
        OFFSET 0
    ) AS r WHERE b.kind = 2
    UNION ALL
    SELECT 'procedure', b.*, r.search FROM best AS b CROSS JOIN LATERAL (
        SELECT p.search FROM procedures AS p
        WHERE p.tenant_id = %(tenant_id)s AND p.id = b.record_id AND (%(history)s::boolean OR p.status = 'active')
        OFFSET 0
    ) AS r WHERE b.kind = 3
    UNION ALL
    SELECT 'outcome', b.*, r.search FROM best AS b CROSS JOIN LATERAL (
        SELECT o.search FROM outcomes AS o
        WHERE o.tenant_id = %(tenant_id)s AND o.id = b.record_id AND (%(history)s::boolean OR o.status = 'active')
        OFFSET 0
    ) AS r WHERE b.kind = 4
    UNION ALL
    SELECT 'entity', b.*, r.search FROM best AS b CROSS JOIN LATERAL (
        SELECT e.search FROM entities AS e
        WHERE e.tenant_id = %(tenant_id)s AND e.id = b.record_id AND e.declared
          AND (%(history)s::boolean OR e.status = 'active')
        OFFSET 0
    ) AS r WHERE b.kind = 5
    UNION ALL
    SELECT 'passage', b.*, r.search FROM best AS b CROSS JOIN LATERAL (
        SELECT p.search, p.source_id FROM passages AS p
        WHERE p.tenant_id = %(tenant_id)s AND p.id = b.record_id
        OFFSET 0
    ) AS r CROSS JOIN LATERAL (
        SELECT 1 FROM sources AS s
        WHERE s.tenant_id = %(tenant_id)s AND s.id = r.source_id
          AND coalesce(s.source_date, s.created_at) <= coalesce(%(as_of)s::timestamptz, now())
        OFFSET 0
    ) AS dated WHERE b.kind = 6
),
weighed AS (
    SELECT a.type, a.record_id AS id, a.weight + coalesce(more.weight, 0) AS weight, a.bits | coalesce(more.bits, 0) AS bits
    FROM alive AS a LEFT JOIN LATERAL (
        SELECT sum((w.rarity * memory_os_impact(f.times, length(ts_filter(a.search, '{d}'))) * 1000000)::int) AS weight, bit_or(w.bit) AS bits
        FROM words AS w CROSS JOIN LATERAL (
            SELECT memory_os_frequency(a.search, w.word) AS times OFFSET 0
        ) AS f
        WHERE w.cut AND a.bits & w.bit = 0 AND f.times > 0
    ) AS more ON true
)
SELECT type, id, weight / 1000000::float8 AS rank, bit_count(bits::bit(32))::int AS shared
FROM weighed
ORDER BY weight DESC, id
LIMIT %(limit)s
