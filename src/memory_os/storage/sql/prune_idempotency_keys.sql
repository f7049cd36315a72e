DELETE FROM idempotency_keys AS k USING (
    SELECT principal, key FROM idempotency_keys
    WHERE tenant_id = %(tenant_id)s AND created_at < now() - %(seconds)s * interval '1 second'
    LIMIT %(batch)s
) AS old WHERE k.tenant_id = %(tenant_id)s AND k.principal = old.principal AND k.key = old.key
