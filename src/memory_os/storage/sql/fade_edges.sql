-- Edges fade to what was computed for them, unless they were used or changed since. What they are worth without the
-- answers that used them fades by the same share.
UPDATE edges AS e
SET claimed_confidence = e.claimed_confidence * given.after / nullif(given.before, 0), confidence = given.after,
    faded_at = %(moment)s::timestamptz, version = e.version + 1, updated_at = now()
FROM unnest(%(ids)s::uuid[], %(befores)s::float8[], %(afters)s::float8[], %(used)s::timestamptz[])
    AS given (id, before, after, used_at)
WHERE e.tenant_id = %(tenant_id)s AND e.id = given.id AND e.confidence = given.before AND e.used_at = given.used_at
RETURNING e.id, e.version
