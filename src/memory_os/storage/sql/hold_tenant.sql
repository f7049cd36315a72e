-- Whether this transaction works for who holds the tenant, and whether it sees the tenant's rows. Nobody takes the tenant
-- over before it ends, so that nothing is derived by a worker that has lost it.
SELECT current_setting('memory_os.tenant_id', true) = %(tenant_id)s::uuid::text AS entered
FROM projection_leases WHERE tenant_id = %(tenant_id)s AND token = %(token)s FOR SHARE
