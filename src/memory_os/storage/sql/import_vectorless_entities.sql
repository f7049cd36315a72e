-- Entities that were stored without a vector, which no worker makes for them.
SELECT id, name, aliases, summary, version FROM entities
WHERE tenant_id = %(tenant_id)s AND declared AND embedding IS NULL AND id > %(after)s::uuid
ORDER BY id LIMIT %(batch)s
