-- At most once a minute a token, whatever the number of processes; a row that somebody holds (a rotation) is passed over.
UPDATE tokens SET last_used_at = now()
WHERE tenant_id = %(tenant_id)s AND id = (
    SELECT id FROM tokens
    WHERE tenant_id = %(tenant_id)s AND id = %(token_id)s
      AND (last_used_at IS NULL OR last_used_at < now() - interval '59 seconds')
    FOR NO KEY UPDATE SKIP LOCKED
)
