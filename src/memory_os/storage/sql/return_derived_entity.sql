-- A derived entity comes back as it was, unless something has named it again.
INSERT INTO entities (tenant_id, id, declared, name, entity_type, confidence, mention_confidence, first_seen, last_seen,
                      created_at)
SELECT %(tenant_id)s, g.id, false, g.name, g.entity_type, g.confidence, g.mention_confidence, g.first_seen, g.last_seen,
       g.created_at
FROM jsonb_to_record(%(row)s::jsonb) AS g (
    id uuid, name text, entity_type text, confidence float8, mention_confidence float8, first_seen timestamptz,
    last_seen timestamptz, created_at timestamptz)
ON CONFLICT DO NOTHING
