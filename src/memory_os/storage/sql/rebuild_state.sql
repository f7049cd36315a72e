SELECT status, phase, processed, total, error FROM graph_rebuilds WHERE tenant_id = %(tenant_id)s AND id = %(id)s
