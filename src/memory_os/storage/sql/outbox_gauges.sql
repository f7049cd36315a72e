SELECT tenant_id, status, events, oldest_seconds, last_id FROM outbox_gauges()
