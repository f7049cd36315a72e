-- Walks that wait, oldest retrieval first (ids grow with time), for as long as the transaction lasts; those that another
-- worker has in hand are passed over.
SELECT w.retrieval_id, w.edge_id, w.record_id, w.confirmed, r.conversation_id, r.user_id, r.token_id, r.created_at
FROM retrieval_edges AS w JOIN retrievals AS r ON r.tenant_id = w.tenant_id AND r.id = w.retrieval_id
WHERE w.tenant_id = %(tenant_id)s AND r.tenant_id = %(tenant_id)s AND w.state = 'waiting'
ORDER BY w.retrieval_id, w.edge_id, w.record_id LIMIT %(batch)s
FOR UPDATE OF w SKIP LOCKED
