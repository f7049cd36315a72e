-- Tenants with walks that wait. The recursive steps hop from tenant to tenant along the partial index, whatever waits.
WITH RECURSIVE waiting AS (
    (SELECT tenant_id FROM retrieval_edges WHERE state = 'waiting' ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT r.tenant_id FROM retrieval_edges AS r
            WHERE r.state = 'waiting' AND r.tenant_id > w.tenant_id ORDER BY r.tenant_id LIMIT 1)
    FROM waiting AS w WHERE w.tenant_id IS NOT NULL
)
SELECT tenant_id FROM waiting WHERE tenant_id IS NOT NULL
