-- Which of these aggregates somebody has deleted.
SELECT aggregate_id FROM graph_tombstones
WHERE tenant_id = %(tenant_id)s AND aggregate_id = ANY (%(ids)s)
