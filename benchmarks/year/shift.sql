-- What a tenant has written since a real moment is put to a simulated one, in every table and column that keeps a time:
-- the order of the rows and the seconds between them stay. Times that were given with a record are earlier, and stay too.
-- As the superuser, with triggers off: these times are not the product's to change.
--
-- Left alone is what the machinery of the worker and of tokens counts by the real clock.
DO $shift$
DECLARE
    of_tenant uuid := current_setting('year.tenant')::uuid;
    since timestamptz := current_setting('year.since')::timestamptz;
    moment timestamptz := current_setting('year.moment')::timestamptz;
    place record;
BEGIN
    FOR place IN
        SELECT c.relname,
               string_agg(format('%1$I = CASE WHEN %1$I >= $2 THEN $3 + (%1$I - $2) ELSE %1$I END', a.attname), ', ') AS sets,
               string_agg(format('%I >= $2', a.attname), ' OR ') AS written
        FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.atttypid = 'timestamptz'::regtype AND a.attnum > 0
             AND NOT a.attisdropped AND a.attgenerated = ''
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND EXISTS (SELECT 1 FROM pg_attribute AS t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
          AND c.relname !~ '^(tenants|tokens|workers|outbox|projection|graph|idempotency|tombstones|deleted|token_vectors|vector|text_frequencies)'
        GROUP BY c.relname
    LOOP
        EXECUTE format('UPDATE %I SET %s WHERE tenant_id = $1 AND (%s)', place.relname, place.sets, place.written)
            USING of_tenant, since, moment;
    END LOOP;
END
$shift$
