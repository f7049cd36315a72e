-- The server was restarted or replaced, and what it had acknowledged last may be gone: every graph is compared with its
-- canonical rows and mended, and readers are told until that is done.
WITH doubted AS (
    UPDATE graph_states SET doubt = coalesce(doubt, %(reason)s), doubted_at = coalesce(doubted_at, now())
    RETURNING tenant_id
)
INSERT INTO graph_verifications (tenant_id, id, repair, requested_by)
SELECT tenant_id, uuidv7(), true, 'the service: ' || %(reason)s FROM doubted
ON CONFLICT DO NOTHING
