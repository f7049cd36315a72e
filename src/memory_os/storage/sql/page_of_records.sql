-- Records are in the graph as ends of links, and only so.
SELECT DISTINCT target_id AS id FROM entity_links
WHERE tenant_id = %(tenant_id)s AND layer NOT IN ('memory', 'entity') AND target_id > %(after)s
ORDER BY target_id LIMIT %(page)s
