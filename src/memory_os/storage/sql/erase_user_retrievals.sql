DELETE FROM retrievals WHERE tenant_id = %(tenant_id)s AND user_id = %(user)s
