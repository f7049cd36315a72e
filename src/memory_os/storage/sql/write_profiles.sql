-- The next versions of profiles: each where the one that it was held against still stands, and is the newest; a first one
-- of a user where the user still has memories, since one who was erased meanwhile must not come back.
WITH given AS (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
        id uuid, previous uuid, user_id text, version int, content jsonb, diff jsonb)
),
standing AS MATERIALIZED (
    SELECT p.id FROM profiles AS p
    WHERE p.tenant_id = %(tenant_id)s AND p.id IN (SELECT g.previous FROM given AS g) FOR SHARE
)
INSERT INTO profiles (tenant_id, id, run_id, visibility, user_id, version, moment, content, diff)
SELECT %(tenant_id)s, g.id, %(run_id)s, CASE WHEN g.user_id IS NULL THEN 'tenant' ELSE 'private' END, g.user_id,
       g.version, %(moment)s::timestamptz, g.content, g.diff
FROM given AS g
WHERE CASE
    WHEN g.previous IS NOT NULL THEN g.previous IN (SELECT s.id FROM standing AS s)
    ELSE g.user_id IS NULL
         OR EXISTS (SELECT FROM memories AS m WHERE m.tenant_id = %(tenant_id)s AND m.user_id = g.user_id)
END
ON CONFLICT DO NOTHING
RETURNING id
