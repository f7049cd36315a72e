-- Edges gain what they were computed to have, under the lock of `lock_edges.sql`. Before the first gain, and wherever an
-- edge has become less sure since, what is claimed is what it has without the gain: LEAST passes over NULL. Used, it rests
-- before it fades again.
UPDATE edges AS e
SET claimed_confidence = least(e.claimed_confidence, e.confidence), confidence = given.confidence,
    co_reference_count = given.co_reference_count, used_at = greatest(e.used_at, now()), version = e.version + 1, updated_at = now()
FROM unnest(%(ids)s::uuid[], %(confidences)s::float8[], %(counts)s::int[])
    AS given (id, confidence, co_reference_count)
WHERE e.tenant_id = %(tenant_id)s AND e.id = given.id
RETURNING e.id, e.version
