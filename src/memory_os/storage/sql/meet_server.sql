INSERT INTO graph_servers (backend, identity) VALUES (%(backend)s, %(identity)s)
ON CONFLICT (backend) DO UPDATE SET identity = excluded.identity, watched_at = now()
