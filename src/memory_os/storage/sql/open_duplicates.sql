-- The next open reviews, by id, of pairs that may say the same.
SELECT id, memory_id, other_id FROM memory_reviews
WHERE tenant_id = %(tenant_id)s AND id > %(after)s::uuid AND status = 'open' AND kind = 'duplicate'
ORDER BY id LIMIT %(batch)s
