-- The sketches of a scope that came since a reader's horizon, and its next one: every transaction before that has ended,
-- and this statement sees what it did.
SELECT count(*) AS sketches, string_agg(uuid_send(memory_id), '') AS ids, string_agg(sketch, '') AS bits,
       pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon
FROM memory_sketches
WHERE tenant_id = %(tenant_id)s AND scope = %(scope)s AND model = %(model)s AND changed >= %(horizon)s
