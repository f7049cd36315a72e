SELECT id FROM memories WHERE tenant_id = %(tenant_id)s AND user_id = %(user)s
