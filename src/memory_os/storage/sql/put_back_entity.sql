-- A declared entity comes back as it was, under its id, with a version above that of its deletion.
INSERT INTO entities (tenant_id, id, declared, name, entity_type, aliases, summary, payload, confidence, status,
                      visibility, user_id, reader_users, reader_groups, first_seen, last_seen, embedding,
                      embedding_model, created_by, created_at, version)
SELECT %(tenant_id)s, g.id, true, g.name, g.entity_type, g.aliases, g.summary, g.payload, g.confidence, g.status,
       g.visibility, g.user_id, g.reader_users, g.reader_groups, g.first_seen, g.last_seen, g.embedding::vector,
       g.embedding_model, g.created_by, g.created_at, greatest(g.version + 2, t.version + 1)
FROM jsonb_to_record(%(row)s::jsonb) AS g (
    id uuid, name text, entity_type text, aliases text[], summary text, payload jsonb, confidence float8, status text,
    visibility text, user_id text, reader_users text[], reader_groups text[], first_seen timestamptz,
    last_seen timestamptz, embedding text, embedding_model text, created_by uuid, created_at timestamptz, version bigint)
LEFT JOIN graph_tombstones AS t
       ON t.tenant_id = %(tenant_id)s AND t.aggregate_type = 'entity' AND t.aggregate_id = g.id
ON CONFLICT (tenant_id, id) DO NOTHING
RETURNING id, version
