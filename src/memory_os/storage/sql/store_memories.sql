-- Any number of memories with their vectors and their events, in one statement and so in one round trip.
-- An id that is taken is left out of the answer, never overwritten.
WITH put AS (
    INSERT INTO memories (
        tenant_id, id, label, layer, status, text, title, confidence, visibility, user_id, reader_users, reader_groups,
        subject, property, origin, conversation_id, tags, metadata, occurred_at, valid_from, valid_to, search,
        embedding_model, created_by, exact_key
    )
    SELECT
        %(tenant_id)s, id, label, layer, 'active', text, title, confidence, visibility, user_id, reader_users,
        reader_groups, subject, property, origin, conversation_id, tags, metadata, occurred_at, valid_from, valid_to,
        memory_os_text_vector(search_text), %(model)s, %(created_by)s,
        decode(exact_key, 'hex')
    FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (
        id uuid, label text, layer text, text text, title text, confidence double precision, visibility text,
        user_id text, reader_users text[], reader_groups text[], subject text, property text, origin text,
        conversation_id text, tags text[], metadata jsonb, occurred_at timestamptz, valid_from timestamptz,
        valid_to timestamptz, search_text text, exact_key text
    )
    ON CONFLICT (tenant_id, id) DO NOTHING
    RETURNING id, created_at, updated_at, visibility, user_id, reader_users, reader_groups
),
vectors AS (
    INSERT INTO memory_embeddings (
        tenant_id, memory_id, model, dimension, embedding, visibility, user_id, reader_users, reader_groups
    )
    SELECT %(tenant_id)s, put.id, %(model)s, %(dimension)s, given.embedding::vector, put.visibility, put.user_id,
           put.reader_users, put.reader_groups
    FROM unnest(%(ids)s::uuid[], %(vectors)s::text[]) AS given (id, embedding) JOIN put ON put.id = given.id
),
events AS (
    INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, request_id)
    SELECT %(tenant_id)s, 'GRAPH_UPSERT', 'memory', put.id, 1, %(request_id)s FROM put WHERE %(graph)s
    RETURNING id
)
SELECT put.id, put.created_at, put.updated_at, (SELECT max(id) FROM events) AS position,
       (SELECT pg_notify('memory_os_outbox', '') WHERE %(graph)s)
FROM put
