-- A rebuilt graph is about to be swapped in: whoever meets it recognises it, even if its maker dies in between.
UPDATE graph_states SET next_epoch = %(epoch)s WHERE tenant_id = %(tenant_id)s
