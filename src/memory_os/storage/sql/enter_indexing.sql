-- The only indexer that works on this tenant, until the end of the transaction; the first number is the one of
-- build_vector_index.
SELECT pg_try_advisory_xact_lock(1297045080, hashtext(%(tenant_id)s::uuid::text)) AS entered
