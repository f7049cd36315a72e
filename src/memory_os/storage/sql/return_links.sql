UPDATE entity_links AS l
SET entity_id = given.entity_id, target_id = given.target_id, version = l.version + 1, updated_at = now()
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (id uuid, entity_id uuid, target_id uuid)
WHERE l.tenant_id = %(tenant_id)s AND l.id = given.id
RETURNING l.id, l.version
