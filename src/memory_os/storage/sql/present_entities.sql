SELECT id FROM entities WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s)
