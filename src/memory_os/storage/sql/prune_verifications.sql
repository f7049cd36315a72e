DELETE FROM graph_verifications AS v USING (
    SELECT tenant_id, id FROM graph_verifications
    WHERE finished_at < now() - %(seconds)s * interval '1 second'
    ORDER BY finished_at LIMIT %(batch)s FOR UPDATE SKIP LOCKED
) AS old WHERE v.tenant_id = old.tenant_id AND v.id = old.id
