SELECT m.id FROM memories AS m
LEFT JOIN extractions AS x ON x.tenant_id = m.tenant_id AND x.memory_id = m.id
     AND x.extractor = %(extractor)s AND x.extractor_version = %(extractor_version)s
WHERE m.tenant_id = %(tenant_id)s AND m.id > %(after)s AND x.memory_id IS NULL
ORDER BY m.id LIMIT %(page)s
