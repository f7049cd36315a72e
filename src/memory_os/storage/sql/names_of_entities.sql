SELECT entity_id, canonical_name, surface FROM entity_names WHERE tenant_id = %(tenant_id)s AND entity_id = ANY (%(ids)s)
