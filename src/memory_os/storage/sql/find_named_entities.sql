-- The entities that bear one of these canonical names: declared ones by name or alias, derived ones by their name.
-- A derived one is shown as a memory that this reader sees calls it. Equality of text is leakproof, so both indexes serve under row-level security.
SELECT n.canonical_name, n.surface, e.id, e.declared
FROM entity_names AS n JOIN entities AS e ON e.tenant_id = n.tenant_id AND e.id = n.entity_id
WHERE n.tenant_id = %(tenant_id)s AND e.tenant_id = %(tenant_id)s AND n.canonical_name = ANY (%(names)s::text[])
  AND (%(history)s::boolean OR e.status = 'active')
UNION ALL
SELECT e.canonical_name,
       coalesce((SELECT m.name FROM mentions AS m WHERE m.tenant_id = e.tenant_id AND m.entity_id = e.id
                  ORDER BY m.confidence DESC LIMIT 1), e.canonical_name),
       e.id, e.declared
FROM entities AS e
WHERE e.tenant_id = %(tenant_id)s AND e.canonical_name = ANY (%(names)s::text[]) AND NOT e.declared
  AND (%(history)s::boolean OR e.status = 'active')
