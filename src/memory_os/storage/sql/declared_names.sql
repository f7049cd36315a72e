SELECT canonical_name, surface FROM entity_names WHERE tenant_id = %(tenant_id)s
