-- What people wrote and the log kept: about a record that goes, or what came with it, or where it or its entry names one,
-- such as the words of a link that was deleted before.
WITH about AS MATERIALIZED (SELECT id::text AS word FROM unnest(%(about)s::uuid[]) AS given (id)),
said AS MATERIALIZED (
    SELECT c.audit_id, s.word #>> '{}' AS word
    FROM audit_contents AS c JOIN audit_log AS a ON a.tenant_id = c.tenant_id AND a.id = c.audit_id,
         jsonb_path_query(jsonb_build_array(c.content, a.detail), '$.** ? (@.type() == "string")') AS s (word)
    WHERE c.tenant_id = %(tenant_id)s AND length(s.word #>> '{}') = 36
),
named AS MATERIALIZED (
    SELECT c.audit_id FROM about JOIN audit_contents AS c ON c.tenant_id = %(tenant_id)s AND c.target_id = about.word
    UNION SELECT s.audit_id FROM said AS s JOIN about ON about.word = s.word
)
DELETE FROM audit_contents AS c USING named WHERE c.tenant_id = %(tenant_id)s AND c.audit_id = named.audit_id
