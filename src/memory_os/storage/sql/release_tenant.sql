UPDATE projection_leases SET lease_until = clock_timestamp() - interval '1 millisecond'
WHERE tenant_id = %(tenant_id)s AND token = %(token)s
