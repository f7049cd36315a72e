-- The circuit breaker: of one edge and period the first walk is noted, and every other one is not. The edges are locked
-- by now, so that a worker that waited for them sees what the other one has noted.
INSERT INTO edge_reinforcements (tenant_id, edge_id, period, retrieval_id)
SELECT %(tenant_id)s, given.edge_id, given.period, given.retrieval_id
FROM unnest(%(edge_ids)s::uuid[], %(periods)s::text[], %(retrieval_ids)s::uuid[])
    AS given (edge_id, period, retrieval_id)
ON CONFLICT (tenant_id, edge_id, period) DO NOTHING
RETURNING edge_id, period
