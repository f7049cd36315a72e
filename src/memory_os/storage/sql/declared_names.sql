SELECT canonical_name, surface, entity_id FROM entity_names WHERE tenant_id = %(tenant_id)s
