INSERT INTO entities AS e (tenant_id, id, declared, name, entity_type, first_seen, last_seen)
SELECT %(tenant_id)s, given.id, false, given.name, 'unknown', given.seen, given.seen
FROM unnest(%(ids)s::uuid[], %(names)s::text[], %(seen)s::timestamptz[]) AS given (id, name, seen)
ORDER BY given.id
ON CONFLICT (tenant_id, id) DO UPDATE
SET first_seen = least(e.first_seen, excluded.first_seen), last_seen = greatest(e.last_seen, excluded.last_seen)
WHERE e.first_seen > excluded.first_seen OR e.last_seen < excluded.last_seen
