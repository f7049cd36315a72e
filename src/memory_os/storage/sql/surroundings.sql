-- The passages around some passages, and those themselves: of a conversation `reach` turns to each side, of any other
-- source none. With each how often the question's words occur in it, how many different words it has (function words dropped), and
-- its cosine.
WITH hits AS MATERIALIZED (
    SELECT p.source_id, p.ordinal, CASE WHEN s.kind = 'conversation' THEN %(reach)s::int ELSE 0 END AS reach
    FROM unnest(%(passages)s::uuid[]) AS given (id)
    CROSS JOIN LATERAL (
        SELECT q.source_id, q.ordinal FROM passages AS q WHERE q.tenant_id = %(tenant_id)s AND q.id = given.id
        OFFSET 0
    ) AS p
    CROSS JOIN LATERAL (
        SELECT r.kind FROM sources AS r WHERE r.tenant_id = %(tenant_id)s AND r.id = p.source_id
        OFFSET 0
    ) AS s
),
places AS MATERIALIZED (
    SELECT source_id, place AS ordinal, max(reach) AS reach
    FROM hits CROSS JOIN LATERAL generate_series(ordinal - reach, ordinal + reach) AS place
    GROUP BY source_id, place
)
SELECT n.id, places.source_id, places.ordinal, places.reach > 0 AS turn, n.text, counted.length, counted.counts,
       1 - (v.embedding <=> %(vector)s::vector) AS similarity
FROM places
CROSS JOIN LATERAL (
    SELECT q.id, q.text, q.search FROM passages AS q
    WHERE q.tenant_id = %(tenant_id)s AND q.source_id = places.source_id AND q.ordinal = places.ordinal
    OFFSET 0
) AS n
CROSS JOIN LATERAL (
    SELECT count(*)::int AS length,
           jsonb_object_agg(w.lexeme, cardinality(w.positions)) FILTER (WHERE w.lexeme = ANY (%(lexemes)s::text[])) AS counts
    FROM unnest(ts_filter(n.search, '{d}')) AS w
) AS counted
LEFT JOIN LATERAL (
    SELECT e.embedding FROM passage_embeddings AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.passage_id = n.id AND e.model = %(model)s
    OFFSET 0
) AS v ON true
