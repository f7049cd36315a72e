SELECT tenant_id, epoch, next_epoch, doubt FROM graph_states
WHERE tenant_id > %(after)s ORDER BY tenant_id LIMIT %(page)s
