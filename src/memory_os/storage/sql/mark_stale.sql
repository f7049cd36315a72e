-- Memories are marked stale, or fresh again; and when each was used last is kept, since the log of it goes after a month.
UPDATE memories AS m SET stale_at = given.stale_at, used_at = greatest(m.used_at, given.used_at)
FROM unnest(%(ids)s::uuid[], %(stale)s::timestamptz[], %(used)s::timestamptz[]) AS given (id, stale_at, used_at)
WHERE m.tenant_id = %(tenant_id)s AND m.id = given.id
RETURNING m.id
