-- In how many records that the reader may read each word of a text stands, and, as the empty word, how many there are.
-- The text is parsed by the configuration of the documents, never as query syntax; function words are dropped.
--
-- A word has one list of postings for each of `readers` and of `pasts`, all of which the reader sees whole, so that no
-- count tells of hidden records. Long lists are known from text_frequencies, or counted up to a bound: 1,000 entries
-- of each list for an ordinary question, fewer for one of very many words.
WITH parsed AS MATERIALIZED (
    SELECT lexeme, positions[1] AS place FROM unnest(to_tsvector('english', %(text)s))
    ORDER BY place, lexeme
    LIMIT %(max_lexemes)s
),
scopes AS MATERIALIZED (
    SELECT memory_os_scope(reader, past) AS scope
    FROM unnest(%(readers)s::text[]) AS reader CROSS JOIN unnest(%(pasts)s::boolean[]) AS past
),
bound AS MATERIALIZED (
    SELECT least(1000, greatest(16, 32768 / (1 + (SELECT count(*) FROM parsed) * (SELECT count(*) FROM scopes)))) AS most
),
words AS MATERIALIZED (
    SELECT lexeme, (SELECT most FROM bound) AS most FROM parsed
    UNION ALL
    SELECT '', %(most_records)s WHERE EXISTS (SELECT 1 FROM parsed)
),
lists AS MATERIALIZED (
    SELECT w.lexeme, w.most, memory_os_term(s.scope, w.lexeme) AS term FROM words AS w CROSS JOIN scopes AS s
),
counted AS (
    SELECT l.lexeme, c.records, c.records < l.most OR c.known AS is_whole
    FROM lists AS l CROSS JOIN LATERAL (
        SELECT coalesce(k.records, u.records) AS records, k.records IS NOT NULL AS known
        FROM (
            SELECT (
                SELECT f.records FROM text_frequencies AS f
                WHERE f.tenant_id = %(tenant_id)s AND f.term = l.term
            ) AS records OFFSET 0
        ) AS k CROSS JOIN LATERAL (
            SELECT count(*) AS records FROM (
                SELECT 1 FROM postings AS p
                WHERE k.records IS NULL
                  AND p.tenant_id = %(tenant_id)s AND p.term = l.term
                ORDER BY p.impact DESC, p.record_id DESC, p.kind DESC
                LIMIT l.most
            ) AS head
        ) AS u
    ) AS c
)
SELECT lexeme, sum(records)::int AS records, bool_and(is_whole) AS is_whole FROM counted GROUP BY lexeme
