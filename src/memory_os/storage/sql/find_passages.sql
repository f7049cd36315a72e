-- Where each piece of evidence leads: its passage, or else the first one of its source that holds the quote, and where in
-- it the quote begins. `there` tells whether the passage that was named is one of the source.
SELECT given.n, found.id AS passage_id, found.place,
       EXISTS (SELECT 1 FROM passages AS p
               WHERE p.tenant_id = %(tenant_id)s AND p.id = given.passage_id AND p.source_id = given.source_id) AS there
FROM unnest(%(n)s::int[], %(source_ids)s::uuid[], %(passage_ids)s::uuid[], %(quotes)s::text[])
     AS given (n, source_id, passage_id, quote)
LEFT JOIN LATERAL (
    SELECT p.id, strpos(p.text, given.quote) - 1 AS place FROM passages AS p
    WHERE p.tenant_id = %(tenant_id)s AND p.source_id = given.source_id
      AND (given.passage_id IS NULL OR p.id = given.passage_id)
      AND (given.quote IS NULL OR strpos(p.text, given.quote) > 0)
    ORDER BY p.ordinal LIMIT 1
) AS found ON true
