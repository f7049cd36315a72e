-- Nobody derives anything for the tenant until this transaction ends: workers hold the lease while they do, and begin
-- with it. Ask for it before any other lock. No row where no worker has ever come by, and none then knows old names.
SELECT 1 AS held FROM projection_leases WHERE tenant_id = %(tenant_id)s FOR NO KEY UPDATE
