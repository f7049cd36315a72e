-- Edges that once lay at a memory that goes stay where they are, and forget where they came from.
UPDATE edges AS e SET migrated_from = NULL
WHERE e.tenant_id = %(tenant_id)s AND e.migrated_from IN (SELECT id FROM unnest(%(memories)s::uuid[]) AS gone (id))
