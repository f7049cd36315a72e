-- What memories say and name, of which a candidate's words are made: the beginning of each text, and the words by which it
-- names entities that all of its readers may read. The names are those of the text: what else the entity is called may not
-- be known to these readers.
SELECT m.id, m.version, m.layer, left(m.text, 4000) AS text, m.title, m.confidence, named.entities, named.names
FROM memories AS m
CROSS JOIN LATERAL (
    SELECT array_agg(n.entity_id ORDER BY n.entity_id, n.name) AS entities,
           array_agg(n.name ORDER BY n.entity_id, n.name) AS names
    FROM mentions AS n JOIN entities AS e ON e.tenant_id = n.tenant_id AND e.id = n.entity_id
    WHERE n.tenant_id = m.tenant_id AND n.memory_id = m.id
      AND memory_os_covers(e.visibility, e.user_id, e.reader_users, e.reader_groups,
                           m.visibility, m.user_id, m.reader_users, m.reader_groups)
) AS named
WHERE m.tenant_id = %(tenant_id)s AND m.id = ANY (%(ids)s::uuid[])
