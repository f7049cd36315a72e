-- Edges fade to what was computed for them, unless they were used or changed since.
UPDATE edges AS e
SET claimed_confidence = given.claimed, confidence = given.after, faded_at = %(moment)s::timestamptz,
    version = e.version + 1, updated_at = now()
FROM unnest(%(ids)s::uuid[], %(befores)s::float8[], %(afters)s::float8[], %(claimed_befores)s::float8[],
            %(claimed)s::float8[], %(used)s::timestamptz[])
    AS given (id, before, after, claimed_before, claimed, used_at)
WHERE e.tenant_id = %(tenant_id)s AND e.id = given.id AND e.confidence = given.before AND e.used_at = given.used_at
  AND e.claimed_confidence IS NOT DISTINCT FROM given.claimed_before
RETURNING e.id, e.version
