-- Memories get another status, window and successor, all at once; they are held by now. One that becomes live where
-- another live one has its exact key loses its own: that is there for merging, and must never stand in the way. A
-- successor that is gone by now is left out.
UPDATE memories AS m
SET status = given.status, valid_from = given.valid_from, valid_to = given.valid_to,
    superseded_by = CASE WHEN given.superseded_by IS NOT DISTINCT FROM m.superseded_by THEN m.superseded_by
        ELSE (SELECT s.id FROM memories AS s WHERE s.tenant_id = %(tenant_id)s AND s.id = given.superseded_by) END,
    exact_key = CASE WHEN given.status IN ('active', 'disputed') AND EXISTS (
        SELECT 1 FROM memories AS o
        WHERE o.tenant_id = %(tenant_id)s AND coalesce(o.user_id, '') = coalesce(m.user_id, '')
          AND o.exact_key = given.exact_key AND o.status IN ('active', 'disputed') AND o.id <> m.id) THEN NULL
        ELSE given.exact_key END,
    version = m.version + 1, updated_at = now()
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
    id uuid, status text, valid_from timestamptz, valid_to timestamptz, superseded_by uuid, exact_key bytea)
WHERE m.tenant_id = %(tenant_id)s AND m.id = given.id
RETURNING m.id, m.version
