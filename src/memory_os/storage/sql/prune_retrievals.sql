-- Retrievals that have served their time go, a batch at a time. When they handed out memories that go stale by disuse is
-- noted with these first: staleness looks back further than the log.
WITH old AS MATERIALIZED (
    SELECT id, created_at FROM retrievals
    WHERE tenant_id = %(tenant_id)s AND created_at < now() - %(seconds)s * interval '1 second'
    ORDER BY created_at LIMIT %(batch)s
), used AS (
    UPDATE memories AS m SET used_at = greatest(m.used_at, handed.at)
    FROM (
        SELECT i.record_id, max(o.created_at) AS at
        FROM old AS o JOIN retrieval_items AS i ON i.tenant_id = %(tenant_id)s AND i.retrieval_id = o.id
        WHERE i.record_type = 'memory' AND i.in_pack
        GROUP BY i.record_id
    ) AS handed
    WHERE m.tenant_id = %(tenant_id)s AND m.id = handed.record_id AND m.label IN ('Reference', 'Resource')
)
DELETE FROM retrievals AS r USING old WHERE r.tenant_id = %(tenant_id)s AND r.id = old.id
