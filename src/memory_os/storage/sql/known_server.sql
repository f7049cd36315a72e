SELECT 1 AS known FROM graph_servers WHERE backend = %(backend)s
