-- From the command line of the instance; the API asks with its own principal.
INSERT INTO graph_rebuilds (tenant_id, id, user_id, requested_by)
VALUES (%(tenant_id)s, %(id)s, %(user_id)s, 'command line')
ON CONFLICT DO NOTHING
RETURNING id
