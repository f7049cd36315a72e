SELECT p.id FROM passages AS p
WHERE p.tenant_id = %(tenant_id)s AND p.source_id IN (SELECT id FROM unnest(%(sources)s::uuid[]) AS given (id))
