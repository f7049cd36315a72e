-- One pending projection for each aggregate, in the transaction of the write that caused it.
-- The notification only wakes workers sooner; identical ones of a transaction are sent once.
WITH given AS (
    SELECT * FROM unnest(
        %(event_types)s::text[], %(aggregate_types)s::text[], %(aggregate_ids)s::uuid[], %(versions)s::bigint[],
        %(payloads)s::text[]
    ) AS e (event_type, aggregate_type, aggregate_id, version, payload)
),
put AS (
    INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, payload, request_id)
    SELECT %(tenant_id)s, event_type, aggregate_type, aggregate_id, version, payload::jsonb, %(request_id)s FROM given
    RETURNING id
)
SELECT max(id) AS position, pg_notify('memory_os_outbox', '') FROM put
