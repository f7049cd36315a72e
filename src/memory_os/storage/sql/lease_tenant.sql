-- One writer a tenant graph: takes a lease that is free or has expired; no row when somebody holds it.
INSERT INTO projection_leases AS l (tenant_id, token, worker_id, lease_until)
VALUES (%(tenant_id)s, %(token)s, %(worker_id)s, clock_timestamp() + %(lease_s)s * interval '1 second')
ON CONFLICT (tenant_id) DO UPDATE
SET token = excluded.token, worker_id = excluded.worker_id, lease_until = excluded.lease_until
WHERE l.lease_until < clock_timestamp()
RETURNING token
