-- A memory gets back the mark that it had, or none, unless it was marked or freed once more since.
UPDATE memories AS m SET stale_at = %(before)s::timestamptz
WHERE m.tenant_id = %(tenant_id)s AND m.id = %(id)s AND m.stale_at IS NOT DISTINCT FROM %(after)s::timestamptz
RETURNING m.id
