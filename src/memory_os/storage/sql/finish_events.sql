-- Guarded by the lease token: what somebody else owns by now is left alone. A later success also heals what is waiting
-- or dead of the same aggregate, since it has projected the aggregate's present state.
WITH finished AS (
    UPDATE outbox_events AS o
    SET status = 'done', finished_at = clock_timestamp(), lease_token = NULL, lease_until = NULL
    WHERE o.tenant_id = %(tenant_id)s AND o.id = ANY (%(ids)s) AND o.status = 'leased' AND o.lease_token = %(token)s
    RETURNING o.id, o.aggregate_type, o.aggregate_id
),
healed AS (
    UPDATE outbox_events AS o
    SET status = 'done', finished_at = clock_timestamp(), superseded_by = f.id
    FROM finished AS f
    WHERE o.tenant_id = %(tenant_id)s AND o.status = 'dead' AND o.aggregate_id = f.aggregate_id
      AND o.aggregate_type = f.aggregate_type AND o.id < f.id
    RETURNING o.id
)
SELECT (SELECT count(*) FROM finished)::int AS finished, (SELECT count(*) FROM healed)::int AS healed
