-- Where records come from, as far as this reader may know: each memory's strongest living evidence, each passage's source,
-- and which of these memories state what one of these passages says. Evidence is hidden with its source and its memory.
-- At an earlier moment of the record that was there which had been recorded, and not withdrawn, by then.
(SELECT DISTINCT ON (e.memory_id)
        'evidence' AS kind, e.memory_id AS record_id, s.id AS source_id, s.title,
        coalesce(s.source_date, s.created_at) AS date, e.support,
        substring(p.text FROM e.quote_start + 1 FOR e.quote_end - e.quote_start) AS quote, NULL::uuid AS passage_id
 FROM evidence AS e
      JOIN sources AS s ON s.tenant_id = e.tenant_id AND s.id = e.source_id
      LEFT JOIN passages AS p ON p.tenant_id = e.tenant_id AND p.id = e.passage_id
 WHERE e.tenant_id = %(tenant_id)s AND e.memory_id = ANY (%(memories)s::uuid[])
   AND (e.withdrawn_at IS NULL OR e.withdrawn_at > %(believed_at)s::timestamptz)
   AND coalesce(e.at <= %(believed_at)s::timestamptz, true)
 ORDER BY e.memory_id, array_position(ARRAY['states', 'supports', 'mentions', 'contradicts'], e.support),
          e.confidence DESC, e.at DESC, e.id)
UNION ALL
SELECT 'passage', p.id, s.id, s.title, coalesce(s.source_date, s.created_at), NULL, NULL, p.id
FROM (
    SELECT id, source_id FROM passages
    WHERE tenant_id = %(tenant_id)s AND id = ANY (%(passages)s::uuid[])
    OFFSET 0  -- by their key: all passages of their sources may be many
) AS p
     JOIN sources AS s ON s.id = p.source_id
WHERE s.tenant_id = %(tenant_id)s
UNION ALL
SELECT 'states', e.memory_id, NULL, NULL, NULL, NULL, NULL, e.passage_id
FROM evidence AS e
WHERE e.tenant_id = %(tenant_id)s AND e.passage_id = ANY (%(passages)s::uuid[]) AND e.support = 'states'
  AND e.memory_id = ANY (%(memories)s::uuid[])
  AND (e.withdrawn_at IS NULL OR e.withdrawn_at > %(believed_at)s::timestamptz)
  AND coalesce(e.at <= %(believed_at)s::timestamptz, true)
