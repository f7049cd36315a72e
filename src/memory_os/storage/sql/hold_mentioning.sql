-- The memories that mention an entity stay until the end of the transaction: with one that goes, its mentions would.
SELECT m.id FROM memories AS m
WHERE m.tenant_id = %(tenant_id)s
  AND m.id IN (SELECT n.memory_id FROM mentions AS n WHERE n.tenant_id = %(tenant_id)s AND n.entity_id = %(id)s)
ORDER BY m.id FOR KEY SHARE OF m
