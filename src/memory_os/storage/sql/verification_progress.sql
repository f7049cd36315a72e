-- Touches no row when the job is another worker's by now.
UPDATE graph_verifications SET phase = %(phase)s, checked = %(checked)s, total = %(total)s, heartbeat_at = now()
WHERE tenant_id = %(tenant_id)s AND id = %(id)s AND status = 'running' AND attempts = %(attempt)s
