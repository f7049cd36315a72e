-- Tenant and events in one statement; no row when the tenant is somebody else's by now.
WITH held AS (
    UPDATE projection_leases SET lease_until = clock_timestamp() + %(lease_s)s * interval '1 second'
    WHERE tenant_id = %(tenant_id)s AND token = %(token)s
    RETURNING tenant_id
),
kept AS (
    UPDATE outbox_events AS o SET lease_until = clock_timestamp() + %(lease_s)s * interval '1 second'
    FROM held WHERE o.tenant_id = held.tenant_id AND o.status = 'leased' AND o.lease_token = %(token)s
)
SELECT 1 AS held FROM held
