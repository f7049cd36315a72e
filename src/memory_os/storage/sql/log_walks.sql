-- The typed edges that led to records of the pack; they wait to be counted.
INSERT INTO retrieval_edges (tenant_id, retrieval_id, edge_id, record_id, record_type)
SELECT %(tenant_id)s, %(retrieval_id)s, w.edge_id, w.record_id, w.record_type
FROM unnest(%(edge_ids)s::uuid[], %(record_ids)s::uuid[], %(record_types)s::text[])
    AS w (edge_id, record_id, record_type)
