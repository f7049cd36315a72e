-- A tombstone has served its time when no event of its aggregate can come any more: none is live, dead, or discarded and
-- still to be retried, and it is older than any write that was under way at its time.
DELETE FROM graph_tombstones AS t USING (
    SELECT tenant_id, aggregate_id, aggregate_type FROM graph_tombstones AS old
    WHERE deleted_at < now() - %(seconds)s * interval '1 second'
      AND NOT EXISTS (
          SELECT 1 FROM outbox_events AS o
          WHERE o.tenant_id = old.tenant_id AND o.aggregate_id = old.aggregate_id
            AND o.aggregate_type = old.aggregate_type AND o.status IN ('pending', 'leased', 'dead', 'discarded'))
    ORDER BY deleted_at LIMIT %(batch)s FOR UPDATE SKIP LOCKED
) AS gone
WHERE t.tenant_id = gone.tenant_id AND t.aggregate_id = gone.aggregate_id AND t.aggregate_type = gone.aggregate_type
