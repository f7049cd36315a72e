-- The kept token vectors of records, as far as this reader may see them.
SELECT record_id, digest, vectors, used_at < now() - interval '1 hour' AS stale
FROM token_vectors
WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND record_id = ANY (%(ids)s::uuid[])
