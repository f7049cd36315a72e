-- Drop what was not used for the longest time, until the rest is within the bound.
WITH sized AS (
    SELECT record_id, model, sum(octet_length(vectors)) OVER (ORDER BY used_at DESC, record_id, model) AS until_here
    FROM token_vectors WHERE tenant_id = %(tenant_id)s
)
DELETE FROM token_vectors AS v USING sized
WHERE v.tenant_id = %(tenant_id)s AND v.record_id = sized.record_id AND v.model = sized.model
  AND sized.until_here > %(most_bytes)s
