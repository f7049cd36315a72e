-- Any number of memories in one statement; an id that is taken is left out of the answer, never overwritten.
INSERT INTO memories (
    tenant_id, id, label, layer, status, text, title, confidence, visibility, user_id, reader_users, reader_groups,
    subject, property, origin, conversation_id, tags, metadata, occurred_at, valid_from, valid_to, search,
    embedding_model, created_by
)
SELECT
    %(tenant_id)s, id, label, layer, 'active', text, title, confidence, visibility, user_id, reader_users,
    reader_groups, subject, property, origin, conversation_id, tags, metadata, occurred_at, valid_from, valid_to,
    to_tsvector('english', search_text) || to_tsvector('simple', search_text), %(embedding_model)s, %(created_by)s
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
    id uuid, label text, layer text, text text, title text, confidence double precision, visibility text,
    user_id text, reader_users text[], reader_groups text[], subject text, property text, origin text,
    conversation_id text, tags text[], metadata jsonb, occurred_at timestamptz, valid_from timestamptz,
    valid_to timestamptz, search_text text
)
ON CONFLICT (tenant_id, id) DO NOTHING
RETURNING id, created_at, updated_at
