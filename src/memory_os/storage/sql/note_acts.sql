-- One act of a kind on each of many memories, with what it takes to undo it.
INSERT INTO memory_acts (tenant_id, id, memory_id, kind, detail, before, token_id, role, user_id, request_id)
SELECT %(tenant_id)s, id, memory_id, %(kind)s, %(detail)s::jsonb, before, %(token_id)s, %(role)s, %(user_id)s,
       %(request_id)s
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (id uuid, memory_id uuid, before jsonb)
