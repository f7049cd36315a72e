-- Candidates with their members.
WITH given AS (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS rows (
        id uuid, title text, text text, strength double precision, visibility text, user_id text, reader_users text[],
        reader_groups text[], memories uuid[], entities uuid[])
),
put AS (
    INSERT INTO insight_candidates (
        tenant_id, id, run_id, rule, title, text, summary, strength, visibility, user_id, reader_users, reader_groups)
    SELECT %(tenant_id)s, id, %(run_id)s, %(rule)s, title, text, 'extractive', strength, visibility, user_id, reader_users,
           reader_groups
    FROM given ON CONFLICT DO NOTHING RETURNING id
),
members AS (
    INSERT INTO insight_members (tenant_id, candidate_id, member_id, memory_id, entity_id)
    SELECT %(tenant_id)s, put.id, m.id, m.id, NULL FROM put JOIN given ON given.id = put.id, unnest(given.memories) AS m (id)
    UNION ALL
    SELECT %(tenant_id)s, put.id, e.id, NULL, e.id FROM put JOIN given ON given.id = put.id, unnest(given.entities) AS e (id)
)
SELECT id FROM put
