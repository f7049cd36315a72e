-- Full-text search over one tenant's memories, business records, declared entities and passages, from plain text and never
-- from query syntax: the text is parsed by the same two configurations as the documents, and its lexemes are joined by OR.
--
-- Function words: the English configuration drops them, and they are left out of the exact ones too, so that they never
-- make a hit. A text of nothing else ("The Who") is searched as a phrase of its exact words instead, from two words on:
-- it finds "The Who played" and not every record with "the" in it. A text without any word finds nothing.
--
-- Of entities only declared ones: a derived one has nothing but the name that its memories have too, and whether the
-- reader may know it is a costly question to ask of each.
--
-- `shared` is how many of the text's content words a hit has, `words` how many there are.
WITH parsed AS MATERIALIZED (
    SELECT lexeme, min(positions[1]) AS place, bool_or(stemmed) AS stemmed
    FROM (
        SELECT lexeme, positions, true AS stemmed FROM unnest(to_tsvector('english', %(text)s))
        UNION ALL
        SELECT lexeme, positions, false FROM unnest(to_tsvector('simple', %(text)s))
        WHERE ts_lexize('english_stem', lexeme) <> '{}'
    ) AS both_ways
    GROUP BY lexeme
    ORDER BY place, lexeme
    LIMIT %(max_lexemes)s
),
quoted AS MATERIALIZED (
    SELECT ('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''')::tsquery AS word, stemmed FROM parsed
),
phrase AS MATERIALIZED (
    SELECT phraseto_tsquery('simple', %(text)s) AS words
    WHERE NOT EXISTS (SELECT 1 FROM parsed) AND length(to_tsvector('simple', %(text)s)) > 1
),
query AS MATERIALIZED (
    SELECT coalesce((SELECT string_agg(word::text, ' | ')::tsquery FROM quoted), (SELECT words FROM phrase)) AS words
),
hits AS MATERIALIZED (
    (SELECT 'memory' AS type, m.id, m.search, ts_rank(m.search, (SELECT words FROM query)) AS rank
     FROM memories AS m
     WHERE m.tenant_id = %(tenant_id)s AND m.search @@ (SELECT words FROM query)
       AND (SELECT words FROM query) IS NOT NULL
       AND coalesce(m.valid_from <= coalesce(%(as_of)s::timestamptz, now()), true)
       AND (%(history)s::boolean
            OR (m.status IN ('active', 'completed', 'abandoned', 'disputed')
                AND coalesce(m.valid_to > coalesce(%(as_of)s::timestamptz, now()), true))
            OR (m.status IN ('superseded', 'expired')
                AND m.valid_to > coalesce(%(as_of)s::timestamptz, now())))
     ORDER BY rank DESC, m.id LIMIT %(limit)s)
    UNION ALL
    (SELECT 'observation', o.id, o.search, ts_rank(o.search, (SELECT words FROM query)) AS rank
     FROM observations AS o
     WHERE o.tenant_id = %(tenant_id)s AND o.search @@ (SELECT words FROM query)
       AND (SELECT words FROM query) IS NOT NULL
       AND (%(history)s::boolean OR o.status = 'active')
     ORDER BY rank DESC, o.id LIMIT %(limit)s)
    UNION ALL
    (SELECT 'procedure', p.id, p.search, ts_rank(p.search, (SELECT words FROM query)) AS rank
     FROM procedures AS p
     WHERE p.tenant_id = %(tenant_id)s AND p.search @@ (SELECT words FROM query)
       AND (SELECT words FROM query) IS NOT NULL
       AND (%(history)s::boolean OR p.status = 'active')
     ORDER BY rank DESC, p.id LIMIT %(limit)s)
    UNION ALL
    (SELECT 'outcome', o.id, o.search, ts_rank(o.search, (SELECT words FROM query)) AS rank
     FROM outcomes AS o
     WHERE o.tenant_id = %(tenant_id)s AND o.search @@ (SELECT words FROM query)
       AND (SELECT words FROM query) IS NOT NULL
       AND (%(history)s::boolean OR o.status = 'active')
     ORDER BY rank DESC, o.id LIMIT %(limit)s)
    UNION ALL
    (SELECT 'entity', e.id, e.search, ts_rank(e.search, (SELECT words FROM query)) AS rank
     FROM entities AS e
     WHERE e.tenant_id = %(tenant_id)s AND e.declared AND e.search @@ (SELECT words FROM query)
       AND (SELECT words FROM query) IS NOT NULL
       AND (%(history)s::boolean OR e.status = 'active')
     ORDER BY rank DESC, e.id LIMIT %(limit)s)
    UNION ALL
    (SELECT 'passage', p.id, p.search, ts_rank(p.search, (SELECT words FROM query)) AS rank
     FROM passages AS p JOIN sources AS s ON s.id = p.source_id
     WHERE p.tenant_id = %(tenant_id)s AND p.search @@ (SELECT words FROM query)
       AND (SELECT words FROM query) IS NOT NULL
       AND s.tenant_id = %(tenant_id)s
       AND coalesce(s.source_date, s.created_at) <= coalesce(%(as_of)s::timestamptz, now())
     ORDER BY rank DESC, p.id LIMIT %(limit)s)
)
SELECT h.type, h.id, h.rank::float8 AS rank,
       (SELECT count(*) FROM quoted WHERE stemmed AND h.search @@ word)::int AS shared,
       (SELECT count(*) FROM quoted WHERE stemmed)::int AS words
FROM (SELECT * FROM hits ORDER BY rank DESC, id LIMIT %(limit)s) AS h
ORDER BY h.rank DESC, h.id
