-- Rows in whose JSON the user's name stands somewhere, as a whole text; which of those texts are users is for the caller
-- to tell.
SELECT 'memory_acts' AS place, id, jsonb_build_object('detail', detail, 'before', before) AS told FROM memory_acts
WHERE tenant_id = %(tenant_id)s
  AND (strpos(detail::text, to_jsonb(%(user)s::text)::text) > 0 OR strpos(before::text, to_jsonb(%(user)s::text)::text) > 0)
UNION ALL
SELECT 'entity_acts', id, jsonb_build_object('detail', detail, 'before', before) FROM entity_acts
WHERE tenant_id = %(tenant_id)s
  AND (strpos(detail::text, to_jsonb(%(user)s::text)::text) > 0 OR strpos(before::text, to_jsonb(%(user)s::text)::text) > 0)
UNION ALL
SELECT 'corrections', id, jsonb_build_object('proposal', proposal) FROM corrections
WHERE tenant_id = %(tenant_id)s AND strpos(proposal::text, to_jsonb(%(user)s::text)::text) > 0
UNION ALL
SELECT 'audit_log', id, jsonb_build_object('detail', detail) FROM audit_log
WHERE tenant_id = %(tenant_id)s AND strpos(detail::text, to_jsonb(%(user)s::text)::text) > 0
UNION ALL
SELECT 'audit_contents', audit_id, jsonb_build_object('content', content) FROM audit_contents
WHERE tenant_id = %(tenant_id)s AND strpos(content::text, to_jsonb(%(user)s::text)::text) > 0
UNION ALL
SELECT 'graph_verifications', id, jsonb_build_object('sample', sample) FROM graph_verifications
WHERE tenant_id = %(tenant_id)s AND strpos(sample::text, to_jsonb(%(user)s::text)::text) > 0
