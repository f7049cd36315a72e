UPDATE entities AS e
SET first_seen = least(e.first_seen, given.seen), last_seen = greatest(e.last_seen, given.seen)
FROM unnest(%(ids)s::uuid[], %(seen)s::timestamptz[]) AS given (id, seen)
WHERE e.tenant_id = %(tenant_id)s AND e.id = given.id
  AND (e.first_seen IS NULL OR e.first_seen > given.seen OR e.last_seen < given.seen)
