-- A name stands for the one declared entity that has it; two homonyms leave it to nobody.
SELECT canonical_name, min(entity_id::text)::uuid AS entity_id
FROM entity_names WHERE tenant_id = %(tenant_id)s AND canonical_name = ANY (%(names)s)
GROUP BY canonical_name HAVING count(*) = 1
