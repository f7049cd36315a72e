-- One writer at a time in a scope: whoever comes second reads what the first one has committed.
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant_id)s::text || '/' || %(scope)s, 20250301))
