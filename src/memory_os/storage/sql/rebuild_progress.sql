-- Touches no row when the job was cancelled, or is another worker's by now.
UPDATE graph_rebuilds SET phase = %(phase)s, total = %(total)s, processed = %(processed)s, heartbeat_at = now()
WHERE tenant_id = %(tenant_id)s AND id = %(id)s AND status = 'running' AND attempts = %(attempt)s
