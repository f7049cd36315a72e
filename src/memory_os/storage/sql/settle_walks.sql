UPDATE retrieval_edges AS w SET state = given.state, reason = given.reason
FROM unnest(%(retrieval_ids)s::uuid[], %(edge_ids)s::uuid[], %(record_ids)s::uuid[], %(states)s::text[],
            %(reasons)s::text[]) AS given (retrieval_id, edge_id, record_id, state, reason)
WHERE w.tenant_id = %(tenant_id)s AND w.retrieval_id = given.retrieval_id AND w.edge_id = given.edge_id
  AND w.record_id = given.record_id
