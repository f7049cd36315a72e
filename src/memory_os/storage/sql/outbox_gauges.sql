SELECT tenant_id, status, events, oldest_seconds, last_id, deletes FROM outbox_gauges()
