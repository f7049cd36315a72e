SELECT p.entity_a, p.entity_b, p.records
FROM unnest(%(a)s::uuid[], %(b)s::uuid[]) AS given (a, b)
JOIN entity_pairs AS p ON p.tenant_id = %(tenant_id)s AND p.entity_a = given.a AND p.entity_b = given.b
