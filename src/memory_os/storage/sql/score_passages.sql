-- How often the words of a question occur in some passages and in those around them, twice as far as `reach`, so that
-- what is within reach of one has its whole window here. `distance` is that to the nearest of the given ones; `times`
-- has a byte for each word, in hexadecimal, and nothing where no word occurs.
WITH words AS MATERIALIZED (
    SELECT ('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''')::tsquery AS word, place
    FROM unnest(%(lexemes)s::text[]) WITH ORDINALITY AS given (lexeme, place)
),
every AS MATERIALIZED (SELECT string_agg(word::text, ' | ')::tsquery AS word FROM words),
hits AS MATERIALIZED (
    SELECT p.source_id, p.ordinal
    FROM unnest(%(passages)s::uuid[]) AS given (id) CROSS JOIN LATERAL (
        SELECT q.source_id, q.ordinal FROM passages AS q WHERE q.tenant_id = %(tenant_id)s AND q.id = given.id OFFSET 0
    ) AS p
),
around AS MATERIALIZED (
    SELECT DISTINCT ON (p.id) p.id, p.source_id, p.ordinal, p.search, abs(p.ordinal - h.ordinal) AS distance
    FROM hits AS h CROSS JOIN LATERAL (
        SELECT q.id, q.source_id, q.ordinal, q.search FROM passages AS q
        WHERE q.tenant_id = %(tenant_id)s AND q.source_id = h.source_id
          AND q.ordinal BETWEEN h.ordinal - 2 * %(reach)s AND h.ordinal + 2 * %(reach)s
        OFFSET 0
    ) AS p
    ORDER BY p.id, distance
)
SELECT a.id, a.source_id, a.ordinal, a.distance, length(ts_filter(a.search, '{d}')) AS length,
       (dense_rank() OVER (ORDER BY a.source_id))::int AS source,
       CASE WHEN a.search @@ (SELECT word FROM every) THEN (
           SELECT string_agg(lpad(to_hex(least(memory_os_frequency(a.search, w.word), 255)), 2, '0'), '' ORDER BY w.place) FROM words AS w
       ) ELSE '' END AS times
FROM around AS a
