-- Corrections of memories that stay, whose proposal became, or speaks of, a record that goes: that they were made stays.
WITH gone AS MATERIALIZED (SELECT id, id::text AS word FROM unnest(%(ids)s::uuid[]) AS given (id)),
said AS MATERIALIZED (
    SELECT c.id, s.word #>> '{}' AS word FROM corrections AS c,
         jsonb_path_query(c.proposal, '$.** ? (@.type() == "string")') AS s (word)
    WHERE c.tenant_id = %(tenant_id)s AND length(s.word #>> '{}') = 36
),
named AS MATERIALIZED (
    SELECT c.id FROM corrections AS c JOIN gone ON gone.id = c.result_id WHERE c.tenant_id = %(tenant_id)s
    UNION SELECT s.id FROM said AS s JOIN gone ON gone.word = s.word
)
UPDATE corrections AS c
SET proposal = '{}', reason = 'erased', result_id = NULL,
    decision_reason = CASE WHEN c.decision_reason IS NOT NULL THEN 'erased' END
FROM named WHERE c.tenant_id = %(tenant_id)s AND c.id = named.id RETURNING c.id
