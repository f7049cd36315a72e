-- The tenants that are served at all.
SELECT tenant_id FROM tenants
WHERE tenant_id <> '00000000-0000-0000-0000-000000000000' AND status = 'active' ORDER BY tenant_id
