SELECT id, name, entity_type, declared, mention_occurrences, mention_confidence FROM entities
WHERE tenant_id = %(tenant_id)s AND id > %(after)s ORDER BY id LIMIT %(page)s
