-- A candidate goes with its members.
DELETE FROM insight_candidates WHERE tenant_id = %(tenant_id)s AND id = %(id)s
