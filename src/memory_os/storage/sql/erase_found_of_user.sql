-- All records of a user but memories, held until the end of the transaction: a source, entity or business record each.
WITH sources_held AS MATERIALIZED (
    SELECT id, version, created_at FROM sources
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user)s ORDER BY id FOR UPDATE
),
entities_held AS MATERIALIZED (
    SELECT id, version, created_at FROM entities
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user)s ORDER BY id FOR UPDATE
),
observations_held AS MATERIALIZED (
    SELECT id, version, created_at FROM observations
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user)s ORDER BY id FOR UPDATE
),
procedures_held AS MATERIALIZED (
    SELECT id, version, created_at FROM procedures
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user)s ORDER BY id FOR UPDATE
),
outcomes_held AS MATERIALIZED (
    SELECT id, version, created_at FROM outcomes
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user)s ORDER BY id FOR UPDATE
)
SELECT 'source' AS kind, * FROM sources_held UNION ALL SELECT 'entity', * FROM entities_held
UNION ALL SELECT 'observation', * FROM observations_held UNION ALL SELECT 'procedure', * FROM procedures_held
UNION ALL SELECT 'outcome', * FROM outcomes_held
