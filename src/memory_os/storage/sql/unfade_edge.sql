-- An edge gets back what a fading took from it, if nothing else has changed its confidence since.
UPDATE edges AS e
SET confidence = %(before)s::float8, claimed_confidence = %(claimed)s::float8, faded_at = %(faded_at)s::timestamptz,
    version = e.version + 1, updated_at = now()
WHERE e.tenant_id = %(tenant_id)s AND e.id = %(id)s AND e.confidence = %(after)s::float8
RETURNING e.id, e.version
