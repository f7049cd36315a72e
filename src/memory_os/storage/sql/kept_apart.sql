-- What was decided about some memories: pairs that are two, since a review ended so, or since a draft that had merged became
-- a memory again; and, without another one, those that had merged and are back: whoever brought them back knew better.
SELECT memory_id AS one, other_id AS other FROM memory_reviews
WHERE tenant_id = %(tenant_id)s AND memory_id = ANY (%(ids)s::uuid[]) AND other_id = ANY (%(ids)s::uuid[])
  AND status IN ('kept', 'superseded', 'disputed')
UNION
SELECT memory_id, (detail -> 'rejected' ->> 'id')::uuid FROM memory_acts
WHERE tenant_id = %(tenant_id)s AND memory_id = ANY (%(ids)s::uuid[]) AND kind = 'merge' AND other_id IS NULL
  AND (detail -> 'rejected' ->> 'id')::uuid = ANY (%(ids)s::uuid[])
UNION
SELECT memory_id, NULL FROM memory_acts
WHERE tenant_id = %(tenant_id)s AND memory_id = ANY (%(ids)s::uuid[]) AND kind = 'merge' AND other_id IS NOT NULL
