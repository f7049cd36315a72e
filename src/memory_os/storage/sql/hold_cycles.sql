-- The tenant's cycles, held until the end of the transaction: nothing is made while something is taken back.
SELECT pg_advisory_xact_lock(hashtextextended('memory_os cycles ' || %(tenant_id)s::text, 0))
