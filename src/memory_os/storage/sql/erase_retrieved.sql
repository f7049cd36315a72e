-- Where records were found, or led to what was found: the question goes too, since it asked for what they say.
WITH gone AS MATERIALIZED (SELECT id FROM unnest(%(ids)s::uuid[]) AS given (id)),
passed AS MATERIALIZED (
    SELECT i.retrieval_id, i.position, p.node ->> 'id' AS word FROM retrieval_items AS i, jsonb_array_elements(i.path) AS p (node)
    WHERE i.tenant_id = %(tenant_id)s AND i.path <> '[]'
),
found AS MATERIALIZED (
    SELECT i.retrieval_id, i.position FROM gone
    JOIN retrieval_items AS i ON i.tenant_id = %(tenant_id)s AND i.record_id = gone.id
    UNION
    SELECT p.retrieval_id, p.position FROM passed AS p JOIN gone ON gone.id::text = p.word
),
items AS (
    DELETE FROM retrieval_items AS i USING found
    WHERE i.tenant_id = %(tenant_id)s AND i.retrieval_id = found.retrieval_id AND i.position = found.position
    RETURNING 1
),
walked AS (
    DELETE FROM retrieval_edges AS w
    WHERE w.tenant_id = %(tenant_id)s
      AND (w.record_id IN (SELECT id FROM gone)
           OR w.edge_id IN (SELECT id FROM unnest(%(edges)s::uuid[]) AS given (id)))
    RETURNING 1
),
said AS (
    DELETE FROM retrieval_feedback AS f WHERE f.tenant_id = %(tenant_id)s AND f.record_id IN (SELECT id FROM gone)
    RETURNING 1
),
asked AS (
    UPDATE retrievals AS r SET query = ''
    WHERE r.tenant_id = %(tenant_id)s AND r.id IN (SELECT retrieval_id FROM found) AND r.query <> ''
    RETURNING 1
)
SELECT (SELECT count(*) FROM items) AS retrieval_items, (SELECT count(*) FROM walked) AS retrieval_edges,
       (SELECT count(*) FROM said) AS retrieval_feedback, (SELECT count(*) FROM asked) AS retrievals
