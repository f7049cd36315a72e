UPDATE entity_links AS l
SET entity_id = CASE WHEN l.entity_id = %(source)s THEN %(into)s ELSE l.entity_id END,
    target_id = CASE WHEN l.target_id = %(source)s AND l.layer = 'entity' THEN %(into)s ELSE l.target_id END,
    version = l.version + 1, updated_at = now()
WHERE l.tenant_id = %(tenant_id)s AND l.id = ANY (%(ids)s::uuid[])
RETURNING l.id, l.version
