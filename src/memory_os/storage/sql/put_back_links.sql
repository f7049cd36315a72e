-- Like put_back_edges.sql, for links.
INSERT INTO entity_links (tenant_id, id, entity_id, layer, target_id, relationship, confidence, valid_from, valid_to,
                          created_by, created_at, version)
SELECT %(tenant_id)s, g.id, g.entity_id, g.layer, g.target_id, g.relationship, g.confidence, g.valid_from, g.valid_to,
       g.created_by, g.created_at, g.version + 2
FROM jsonb_to_recordset(%(rows)s::jsonb) AS g (
    id uuid, entity_id uuid, layer text, target_id uuid, relationship text, confidence float8, valid_from timestamptz,
    valid_to timestamptz, created_by uuid, created_at timestamptz, version bigint)
ON CONFLICT DO NOTHING
RETURNING id, version
