-- One erasure of a tenant at a time, and none beside an answer or a log that is just being written down: whoever writes
-- what was read a moment ago is waited for, and whoever comes later finds that it is gone. See `beside_erasures.sql`.
SELECT pg_advisory_xact_lock(hashtextextended('memory_os.erase:' || %(tenant_id)s::uuid::text, 0))
