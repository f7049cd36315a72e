-- Files with copies that were made since the oldest record that goes: nothing here reaches them.
SELECT count(*) FILTER (WHERE action IN ('tenant.export', 'user.export')) AS exports,
       count(*) FILTER (WHERE action = 'backup') AS backups
FROM audit_log
WHERE tenant_id = %(tenant_id)s AND at >= %(since)s AND action IN ('tenant.export', 'user.export', 'backup')
