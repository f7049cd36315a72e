-- Remember that these were of use just now; a row that another writer holds is passed over.
WITH held AS (
    SELECT record_id FROM token_vectors
    WHERE tenant_id = %(tenant_id)s AND model = %(model)s AND record_id = ANY (%(ids)s::uuid[])
    FOR UPDATE SKIP LOCKED
)
UPDATE token_vectors AS v SET used_at = now() FROM held
WHERE v.tenant_id = %(tenant_id)s AND v.model = %(model)s AND v.record_id = held.record_id
