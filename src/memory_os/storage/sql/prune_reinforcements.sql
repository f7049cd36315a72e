DELETE FROM edge_reinforcements AS r USING (
    SELECT edge_id, period FROM edge_reinforcements
    WHERE tenant_id = %(tenant_id)s AND at < now() - %(seconds)s * interval '1 second'
    ORDER BY at LIMIT %(batch)s
) AS old WHERE r.tenant_id = %(tenant_id)s AND r.edge_id = old.edge_id AND r.period = old.period
