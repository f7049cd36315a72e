-- Those of some memories that the reader sees.
SELECT id FROM memories WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s::uuid[]) ORDER BY id
