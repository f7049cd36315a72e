-- Kept answers that name a record that goes; the nil id stands for more than could be kept beside one.
WITH gone AS MATERIALIZED (
    SELECT id FROM unnest(%(ids)s::uuid[]) AS given (id)
    UNION SELECT '00000000-0000-0000-0000-000000000000' WHERE cardinality(%(ids)s::uuid[]) > 0
),
told AS MATERIALIZED (
    SELECT k.principal, k.key, t.id FROM idempotency_keys AS k, unnest(k.record_ids) AS t (id)
    WHERE k.tenant_id = %(tenant_id)s
),
named AS MATERIALIZED (SELECT DISTINCT t.principal, t.key FROM told AS t JOIN gone ON gone.id = t.id)
UPDATE idempotency_keys AS k SET body = NULL, record_ids = '{}', erased_at = clock_timestamp()
FROM named AS n WHERE k.tenant_id = %(tenant_id)s AND k.principal = n.principal AND k.key = n.key
