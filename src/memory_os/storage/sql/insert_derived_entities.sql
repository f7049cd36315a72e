-- Only what is missing: a proposed row's generated columns are computed even where it conflicts, which costs most of it.
INSERT INTO entities (tenant_id, id, declared, name, entity_type)
SELECT %(tenant_id)s, given.id, false, given.name, 'unknown'
FROM unnest(%(ids)s::uuid[], %(names)s::text[]) AS given (id, name)
WHERE NOT EXISTS (SELECT 1 FROM entities AS e WHERE e.tenant_id = %(tenant_id)s AND e.id = given.id)
ORDER BY given.id
ON CONFLICT (tenant_id, id) DO NOTHING
