-- The next active memories, by id, of some labels whose window has ended by a moment; or which of certain ones those are.
SELECT id, label, status, valid_to FROM memories
WHERE tenant_id = %(tenant_id)s AND id > %(after)s::uuid AND (%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s::uuid[]))
  AND label = ANY (%(labels)s::text[]) AND status = 'active' AND valid_to <= %(moment)s::timestamptz
ORDER BY id LIMIT %(batch)s
