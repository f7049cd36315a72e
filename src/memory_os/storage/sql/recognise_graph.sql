-- Whether a graph with this epoch is the tenant's: the one that is known, the rebuilt one that was about to take its
-- place, or the first that there ever was.
INSERT INTO graph_states AS s (tenant_id, epoch) VALUES (%(tenant_id)s, %(epoch)s)
ON CONFLICT (tenant_id) DO UPDATE
SET epoch = CASE WHEN s.next_epoch = excluded.epoch THEN excluded.epoch ELSE s.epoch END,
    doubt = CASE WHEN s.next_epoch = excluded.epoch THEN NULL ELSE s.doubt END,
    doubted_at = CASE WHEN s.next_epoch = excluded.epoch THEN NULL ELSE s.doubted_at END,
    next_epoch = CASE WHEN s.next_epoch = excluded.epoch THEN NULL ELSE s.next_epoch END
RETURNING s.epoch = %(epoch)s AS known
