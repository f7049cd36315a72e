-- Evidence that is new; what stands already for the same memory stays as it is. A trigger gives it its source's readers.
INSERT INTO evidence (
    tenant_id, id, memory_id, source_id, passage_id, support, confidence, quote_start, quote_end, token_id, role,
    acting_user, request_id
)
SELECT %(tenant_id)s, id, memory_id, source_id, passage_id, support, confidence, quote_start, quote_end, %(token_id)s,
       %(role)s, %(acting_user)s, %(request_id)s
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
    id uuid, memory_id uuid, source_id uuid, passage_id uuid, support text, confidence double precision,
    quote_start int, quote_end int
)
ON CONFLICT DO NOTHING
RETURNING id, memory_id, source_id, passage_id, support, quote_start, quote_end
