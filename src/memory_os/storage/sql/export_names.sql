-- Which of these ids are of entities that nobody has declared, with the names that their ids are made of.
SELECT id, canonical_name FROM entities WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s::uuid[]) AND NOT declared
