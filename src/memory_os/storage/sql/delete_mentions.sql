DELETE FROM mentions WHERE tenant_id = %(tenant_id)s AND memory_id = ANY (%(ids)s) RETURNING memory_id, entity_id
