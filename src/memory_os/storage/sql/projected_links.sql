SELECT id, entity_id, layer, target_id, relationship, confidence, valid_from, valid_to
FROM entity_links WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s)
