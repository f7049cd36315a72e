SELECT DISTINCT target_id AS id FROM entity_links
WHERE tenant_id = %(tenant_id)s AND layer NOT IN ('memory', 'entity') AND target_id = ANY (%(ids)s)
