-- What this reader may see of these records today that had been recorded by a moment, whatever has become of it since: acts
-- tell how its memories stood then. Of what else has changed since, nobody knows how it was: business records and sources
-- are passed over; a declared entity stays for the paths through it, but is no answer (`declared` is false). A derived one is
-- what memories call it, and came and goes with these.
SELECT 'memory' AS type, m.id, m.label, m.title, m.text, m.occurred_at, m.created_at AS date, m.status, m.valid_from, m.valid_to,
       m.confidence, m.superseded_by, true AS declared
FROM memories AS m
WHERE m.tenant_id = %(tenant_id)s AND m.id = ANY (%(memories)s::uuid[]) AND m.created_at <= %(believed_at)s::timestamptz
UNION ALL
SELECT 'observation', o.id, NULL, o.title, o.summary, NULL, o.created_at, o.status, NULL, NULL, o.confidence, NULL, true
FROM observations AS o
WHERE o.tenant_id = %(tenant_id)s AND o.id = ANY (%(records)s::uuid[]) AND (%(history)s::boolean OR o.status = 'active')
  AND o.created_at <= %(believed_at)s::timestamptz AND o.updated_at <= %(believed_at)s::timestamptz
UNION ALL
SELECT 'procedure', p.id, NULL, p.title, p.summary, NULL, p.created_at, p.status, NULL, NULL, p.confidence, NULL, true
FROM procedures AS p
WHERE p.tenant_id = %(tenant_id)s AND p.id = ANY (%(records)s::uuid[]) AND (%(history)s::boolean OR p.status = 'active')
  AND p.created_at <= %(believed_at)s::timestamptz AND p.updated_at <= %(believed_at)s::timestamptz
UNION ALL
SELECT 'outcome', o.id, NULL, o.title, o.summary, NULL, o.created_at, o.status, NULL, NULL, o.confidence, NULL, true
FROM outcomes AS o
WHERE o.tenant_id = %(tenant_id)s AND o.id = ANY (%(records)s::uuid[]) AND (%(history)s::boolean OR o.status = 'active')
  AND o.created_at <= %(believed_at)s::timestamptz AND o.updated_at <= %(believed_at)s::timestamptz
UNION ALL
SELECT 'entity', e.id, e.entity_type,
       CASE WHEN e.declared THEN e.name ELSE
         coalesce((SELECT m.name FROM mentions AS m WHERE m.tenant_id = e.tenant_id AND m.entity_id = e.id
                   ORDER BY m.confidence DESC LIMIT 1), e.canonical_name) END,
       coalesce(e.summary, ''), NULL, e.created_at, e.status, NULL, NULL, e.confidence, NULL,
       e.declared AND e.updated_at <= %(believed_at)s::timestamptz AND (%(history)s::boolean OR e.status = 'active')
FROM entities AS e
WHERE e.tenant_id = %(tenant_id)s AND e.id = ANY (%(entities)s::uuid[])
  AND (NOT e.declared OR e.created_at <= %(believed_at)s::timestamptz)
UNION ALL
SELECT 'passage', p.id, s.kind, s.title, p.text, NULL, coalesce(s.source_date, s.created_at), 'active', NULL, NULL, 1.0, NULL, true
FROM (
    SELECT id, source_id, text FROM passages
    WHERE tenant_id = %(tenant_id)s AND id = ANY (%(records)s::uuid[]) AND created_at <= %(believed_at)s::timestamptz
    OFFSET 0  -- by their key: all passages of their sources may be many
) AS p
     JOIN sources AS s ON s.id = p.source_id
WHERE s.tenant_id = %(tenant_id)s AND coalesce(s.source_date, s.created_at) <= %(as_of)s::timestamptz
UNION ALL
SELECT 'source', s.id, s.kind, s.title, concat_ws(', ', s.author, s.uri), NULL, coalesce(s.source_date, s.created_at), 'active',
       NULL, NULL, 1.0, NULL, true
FROM sources AS s
WHERE s.tenant_id = %(tenant_id)s AND s.id = ANY (%(records)s::uuid[])
  AND s.created_at <= %(believed_at)s::timestamptz AND s.updated_at <= %(believed_at)s::timestamptz
  AND coalesce(s.source_date, s.created_at) <= %(as_of)s::timestamptz
