-- Active memories are marked stale, or fresh again, unless they were changed or marked since they were looked at.
UPDATE memories AS m SET stale_at = given.after
FROM unnest(%(ids)s::uuid[], %(befores)s::timestamptz[], %(afters)s::timestamptz[], %(updated)s::timestamptz[])
    AS given (id, before, after, updated_at)
WHERE m.tenant_id = %(tenant_id)s AND m.id = given.id AND m.status = 'active' AND m.updated_at = given.updated_at
  AND m.stale_at IS NOT DISTINCT FROM given.before
RETURNING m.id
