SELECT entity_a, entity_b, records FROM entity_pairs
WHERE tenant_id = %(tenant_id)s AND (entity_a, entity_b) > (%(after)s, %(after_b)s)
ORDER BY entity_a, entity_b LIMIT %(page)s
