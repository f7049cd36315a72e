SELECT (SELECT count(*) FROM memories WHERE tenant_id = %(tenant_id)s
          AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)) AS memories,
       (SELECT count(*) FROM entities WHERE tenant_id = %(tenant_id)s) AS entities,
       (SELECT count(*) FROM entity_pairs WHERE tenant_id = %(tenant_id)s) AS pairs,
       (SELECT count(*) FROM edges WHERE tenant_id = %(tenant_id)s) AS edges,
       (SELECT count(*) FROM entity_links WHERE tenant_id = %(tenant_id)s) AS links
