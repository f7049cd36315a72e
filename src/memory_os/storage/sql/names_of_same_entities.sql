-- Every name of the declared entities that one of these names belongs to: two texts may call one entity differently.
SELECT o.entity_id, o.surface
FROM entity_names AS n
JOIN entity_names AS o ON o.tenant_id = n.tenant_id AND o.entity_id = n.entity_id
WHERE n.tenant_id = %(tenant_id)s AND o.tenant_id = %(tenant_id)s AND n.canonical_name = ANY (%(names)s::text[])
GROUP BY o.entity_id, o.surface
