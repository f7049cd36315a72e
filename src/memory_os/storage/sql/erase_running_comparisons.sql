-- A comparison that is under way has read what goes, and would tell of it: it begins again, and its worker finds out that
-- it has lost it. The attempt counts, since it is what tells the two apart.
UPDATE graph_verifications SET status = 'pending', phase = 'waiting'
WHERE tenant_id = %(tenant_id)s AND status = 'running'
