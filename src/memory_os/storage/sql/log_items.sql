-- All records of one answer at once, as JSON: a row of values for each was compiled anew by their number, 8 ms for 40.
INSERT INTO retrieval_items
    (tenant_id, retrieval_id, position, record_type, record_id, in_pack, reason, score, arms, path)
SELECT %(tenant_id)s, %(retrieval_id)s, i.position, i.record_type, i.record_id, i.in_pack, i.reason, i.score, i.arms,
       i.path
FROM jsonb_to_recordset(%(items)s::jsonb) AS i (
    position int, record_type text, record_id uuid, in_pack boolean, reason text, score float8, arms jsonb, path jsonb)
