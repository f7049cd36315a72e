-- Like edges_to_merge.sql, for links: the equal one has the same other end, relationship and window. The layer is asked
-- for beside the id of a target, since a client may give a memory and an entity the same id.
SELECT l.id, l.entity_id, l.layer, l.target_id, l.relationship, l.confidence, l.valid_from, l.valid_to, l.created_by,
       l.created_at, l.updated_at, l.version
FROM entity_links AS l
WHERE l.tenant_id = %(tenant_id)s AND l.id IN (
    SELECT m.id FROM entity_links AS m WHERE m.tenant_id = %(tenant_id)s AND m.entity_id = %(source)s
    UNION
    SELECT m.id FROM entity_links AS m
    WHERE m.tenant_id = %(tenant_id)s AND m.target_id = %(source)s AND m.layer = 'entity'
    UNION
    SELECT t.id
    FROM entity_links AS m JOIN entity_links AS t
         ON t.target_id = m.target_id AND t.layer = m.layer AND t.relationship = m.relationship
            AND t.valid_from IS NOT DISTINCT FROM m.valid_from AND t.valid_to IS NOT DISTINCT FROM m.valid_to
    WHERE m.tenant_id = %(tenant_id)s AND t.tenant_id = %(tenant_id)s
      AND m.entity_id = %(source)s AND t.entity_id = %(into)s
    UNION
    SELECT t.id
    FROM entity_links AS m JOIN entity_links AS t
         ON t.entity_id = m.entity_id AND t.relationship = m.relationship
            AND t.valid_from IS NOT DISTINCT FROM m.valid_from AND t.valid_to IS NOT DISTINCT FROM m.valid_to
    WHERE m.tenant_id = %(tenant_id)s AND t.tenant_id = %(tenant_id)s
      AND m.target_id = %(source)s AND m.layer = 'entity' AND t.target_id = %(into)s AND t.layer = 'entity')
ORDER BY l.id FOR UPDATE
