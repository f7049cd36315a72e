-- Living evidence of a memory, or some of it, for another memory too, told by whom and when as it was. What that one has
-- already stays as it is.
INSERT INTO evidence (
    tenant_id, id, memory_id, source_id, passage_id, support, confidence, quote_start, quote_end, token_id, role,
    acting_user, request_id, at
)
SELECT tenant_id, uuidv7(), %(into)s, source_id, passage_id, support, confidence, quote_start, quote_end, token_id, role,
       acting_user, request_id, at
FROM evidence
WHERE tenant_id = %(tenant_id)s AND memory_id = %(source)s AND withdrawn_at IS NULL
  AND (%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s::uuid[]))
ORDER BY source_id, id
ON CONFLICT DO NOTHING
RETURNING id, source_id, visibility, user_id, reader_users, reader_groups
