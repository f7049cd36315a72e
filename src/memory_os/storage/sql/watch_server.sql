-- One worker at a time looks after the graphs; what it gets is the server's identity as it was last seen.
UPDATE graph_servers SET watched_at = now()
WHERE backend = %(backend)s AND watched_at < now() - %(every_s)s * interval '1 second'
RETURNING identity
