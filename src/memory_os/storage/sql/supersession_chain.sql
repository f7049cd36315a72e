-- The memories that a memory took the place of, itself (step 0), and those that took its place, each with its distance.
-- Where labels forbid supersession, an applied correction links the two as long as its act holds. All of the tenant's
-- are walked: one that the reader does not see must not hide those behind it.
WITH RECURSIVE newer (id, step) AS (
    SELECT %(id)s::uuid, 0
    UNION
    SELECT next.id, newer.step + 1
    FROM newer CROSS JOIN LATERAL (
        SELECT m.superseded_by AS id FROM memories AS m
        WHERE m.tenant_id = %(tenant_id)s AND m.id = newer.id AND m.superseded_by IS NOT NULL
        UNION
        SELECT c.result_id FROM corrections AS c
               JOIN memory_acts AS a ON a.tenant_id = c.tenant_id AND a.id = c.act_id AND a.undone_at IS NULL
        WHERE c.tenant_id = %(tenant_id)s AND c.memory_id = newer.id AND c.result_id IS NOT NULL
    ) AS next
    WHERE newer.step < %(most)s
),
older (id, step) AS (
    SELECT %(id)s::uuid, 0
    UNION
    SELECT next.id, older.step - 1
    FROM older CROSS JOIN LATERAL (
        SELECT m.id FROM memories AS m WHERE m.tenant_id = %(tenant_id)s AND m.superseded_by = older.id
        UNION
        SELECT c.memory_id FROM corrections AS c
               JOIN memory_acts AS a ON a.tenant_id = c.tenant_id AND a.id = c.act_id AND a.undone_at IS NULL
        WHERE c.tenant_id = %(tenant_id)s AND c.result_id = older.id
    ) AS next
    WHERE older.step > -%(most)s
)
SELECT id, min(step) AS step FROM (SELECT id, step FROM newer UNION SELECT id, step FROM older) AS steps
GROUP BY id ORDER BY step, id
LIMIT %(rows)s
