-- Held to the end of the transaction by whoever writes down what it has read of records: no erasure ends meanwhile.
SELECT pg_advisory_xact_lock_shared(hashtextextended('memory_os.erase:' || %(tenant_id)s::uuid::text, 0))
