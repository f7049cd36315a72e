-- The next memories, by id, that were not read by the extractor of now, and for which no event waits that would have them
-- read anyway: one that is dead does not wait.
SELECT m.id, m.version, x.extractor, x.extractor_version
FROM memories AS m
LEFT JOIN extractions AS x ON x.tenant_id = m.tenant_id AND x.memory_id = m.id
WHERE m.tenant_id = %(tenant_id)s AND m.id > %(after)s::uuid AND m.created_at <= %(moment)s::timestamptz
  AND (x.extractor, x.extractor_version) IS DISTINCT FROM (%(extractor)s::text, %(extractor_version)s::int)
  AND NOT EXISTS (SELECT 1 FROM outbox_events AS o
                  WHERE o.tenant_id = m.tenant_id AND o.aggregate_type = 'memory' AND o.aggregate_id = m.id
                    AND o.status IN ('pending', 'leased'))
ORDER BY m.id LIMIT %(batch)s
