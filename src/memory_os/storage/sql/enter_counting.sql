-- One worker at a time counts a tenant's words; whoever comes second has nothing left to do.
SELECT pg_try_advisory_xact_lock(hashtextextended('memory_os.count_words:' || %(tenant_id)s::uuid::text, 0)) AS entered
