-- When an entity was seen, without the mentions that it has by a name that is not its own alone.
UPDATE entities AS e
SET first_seen = least(%(first_seen)s::timestamptz, m.first_seen),
    last_seen = greatest(%(last_seen)s::timestamptz, m.last_seen)
FROM (SELECT min(s.seen) AS first_seen, max(s.seen) AS last_seen
      FROM mentions AS s
      JOIN entity_names AS n ON n.tenant_id = s.tenant_id AND n.canonical_name = s.canonical_name
           AND n.entity_id = s.entity_id
      WHERE s.tenant_id = %(tenant_id)s AND s.entity_id = %(id)s
        AND NOT EXISTS (SELECT 1 FROM entity_names AS o
                        WHERE o.tenant_id = s.tenant_id AND o.canonical_name = s.canonical_name
                          AND o.entity_id <> s.entity_id)) AS m
WHERE e.tenant_id = %(tenant_id)s AND e.id = %(id)s
