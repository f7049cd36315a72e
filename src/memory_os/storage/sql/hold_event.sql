SELECT id FROM outbox_events WHERE tenant_id = %(tenant_id)s AND id = %(id)s FOR UPDATE
