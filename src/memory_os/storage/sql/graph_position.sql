-- How far the graph of a tenant follows its canonical rows, and which graph that is. Counting stops at the limit: what
-- lies further behind is "far behind" anyway. A dead event keeps the graph incomplete, but nobody need wait for it.
SELECT count(*) FILTER (WHERE status <> 'dead')::int AS lag, count(*)::int AS counted,
       min(id) FILTER (WHERE status <> 'dead') AS oldest, coalesce(bool_or(status = 'dead'), false) AS incomplete,
       (SELECT max(id) FROM outbox_events WHERE tenant_id = %(tenant_id)s) AS newest, now() AS now,
       (SELECT doubt IS NOT NULL FROM graph_states WHERE tenant_id = %(tenant_id)s) AS doubted,
       (SELECT ARRAY[epoch, next_epoch] FROM graph_states WHERE tenant_id = %(tenant_id)s) AS epochs
FROM (
    SELECT id, status FROM outbox_events
    WHERE tenant_id = %(tenant_id)s AND status IN ('pending', 'leased', 'dead')
    LIMIT %(limit)s
) AS live
