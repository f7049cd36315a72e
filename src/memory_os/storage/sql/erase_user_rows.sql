-- What a user did and nothing else: questions with what was found, tokens, and the keys of requests; and what cycles have
-- written of the user.
WITH bound AS (
    DELETE FROM tokens AS t WHERE t.tenant_id = %(tenant_id)s AND t.user_id = %(user)s RETURNING t.id
),
asked AS MATERIALIZED (
    SELECT id FROM retrievals WHERE tenant_id = %(tenant_id)s AND user_id = %(user)s FOR UPDATE
),
items AS (
    DELETE FROM retrieval_items AS t USING asked
    WHERE t.tenant_id = %(tenant_id)s AND t.retrieval_id = asked.id RETURNING 1
),
walked AS (
    DELETE FROM retrieval_edges AS t USING asked
    WHERE t.tenant_id = %(tenant_id)s AND t.retrieval_id = asked.id RETURNING 1
),
said AS (
    DELETE FROM retrieval_feedback AS t USING asked
    WHERE t.tenant_id = %(tenant_id)s AND t.retrieval_id = asked.id RETURNING 1
),
answered AS (
    DELETE FROM idempotency_keys AS k
    WHERE k.tenant_id = %(tenant_id)s
      AND (substr(k.principal, strpos(k.principal, ':') + 1) = %(user)s
           OR split_part(k.principal, ':', 1) IN (SELECT id::text FROM bound))
    RETURNING 1
),
counted AS (
    DELETE FROM text_frequencies WHERE tenant_id = %(tenant_id)s AND reader = 'u' || %(user)s RETURNING 1
),
described AS (
    DELETE FROM profiles AS p WHERE p.tenant_id = %(tenant_id)s AND p.user_id = %(user)s RETURNING 1
)
SELECT (SELECT count(*) FROM bound) AS tokens, (SELECT count(*) FROM items) AS retrieval_items,
       (SELECT count(*) FROM walked) AS retrieval_edges, (SELECT count(*) FROM said) AS retrieval_feedback,
       (SELECT count(*) FROM answered) AS idempotency_keys, (SELECT count(*) FROM counted) AS text_frequencies,
       (SELECT count(*) FROM described) AS profiles
