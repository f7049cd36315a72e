DELETE FROM retrievals AS r USING (
    SELECT id FROM retrievals
    WHERE tenant_id = %(tenant_id)s AND created_at < now() - %(seconds)s * interval '1 second'
    ORDER BY created_at LIMIT %(batch)s
) AS old WHERE r.tenant_id = %(tenant_id)s AND r.id = old.id
