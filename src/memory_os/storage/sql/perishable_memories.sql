-- The next active memories, by id, of some labels: when each was handed out or changed last, or else stored; and whether it
-- is marked stale.
SELECT m.id, m.label, m.stale_at, m.updated_at,
       greatest(m.created_at, m.updated_at, m.used_at, (
           SELECT max(r.created_at)
           FROM retrieval_items AS i JOIN retrievals AS r ON r.tenant_id = i.tenant_id AND r.id = i.retrieval_id
           WHERE i.tenant_id = m.tenant_id AND i.record_type = 'memory' AND i.record_id = m.id AND i.in_pack
             AND r.created_at <= %(moment)s::timestamptz)) AS used_at
FROM memories AS m
WHERE m.tenant_id = %(tenant_id)s AND m.id > %(after)s::uuid AND m.label = ANY (%(labels)s::text[]) AND m.status = 'active'
ORDER BY m.id LIMIT %(batch)s
