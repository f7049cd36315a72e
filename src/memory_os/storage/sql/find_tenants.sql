-- The tenants that somebody at a command line means by a name or an id.
SELECT tenant_id, name FROM tenants
WHERE tenant_id <> '00000000-0000-0000-0000-000000000000' AND (tenant_id::text = lower(%(wanted)s) OR name = %(wanted)s)
ORDER BY tenant_id LIMIT 10
