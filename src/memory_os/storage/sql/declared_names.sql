-- Every declared name and alias, with the readers of the entity that has it.
SELECT n.canonical_name, n.surface, n.entity_id, e.visibility, e.user_id, e.reader_users, e.reader_groups
FROM entity_names AS n JOIN entities AS e ON e.tenant_id = n.tenant_id AND e.id = n.entity_id
WHERE n.tenant_id = %(tenant_id)s AND e.tenant_id = %(tenant_id)s
