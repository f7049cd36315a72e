-- Memories are marked stale, or fresh again.
UPDATE memories AS m SET stale_at = given.stale_at
FROM unnest(%(ids)s::uuid[], %(stale)s::timestamptz[]) AS given (id, stale_at)
WHERE m.tenant_id = %(tenant_id)s AND m.id = given.id
RETURNING m.id
