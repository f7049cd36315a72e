-- Dead events are never pruned: somebody decides about them.
DELETE FROM outbox_events AS o USING (
    SELECT tenant_id, id FROM outbox_events
    WHERE status IN ('done', 'discarded') AND finished_at < now() - %(seconds)s * interval '1 second'
    ORDER BY finished_at LIMIT %(batch)s FOR UPDATE SKIP LOCKED
) AS old WHERE o.tenant_id = old.tenant_id AND o.id = old.id
