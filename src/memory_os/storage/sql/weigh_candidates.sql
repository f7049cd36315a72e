-- What the question's words and vector are worth in memories that one arm found and the other did not, or that the graph
-- led to: how often each word occurs, how many different words there are (function words dropped), and the cosine.
SELECT given.id, counted.length, counted.counts, 1 - (v.embedding <=> %(vector)s::vector) AS similarity
FROM unnest(%(memories)s::uuid[]) AS given (id)
CROSS JOIN LATERAL (
    SELECT m.search FROM memories AS m WHERE m.tenant_id = %(tenant_id)s AND m.id = given.id
    OFFSET 0
) AS m
CROSS JOIN LATERAL (
    SELECT count(*)::int AS length,
           jsonb_object_agg(w.lexeme, cardinality(w.positions)) FILTER (WHERE w.lexeme = ANY (%(lexemes)s::text[])) AS counts
    FROM unnest(ts_filter(m.search, '{d}')) AS w
) AS counted
LEFT JOIN LATERAL (
    SELECT e.embedding FROM memory_embeddings AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.memory_id = given.id AND e.model = %(model)s
    OFFSET 0
) AS v ON true
