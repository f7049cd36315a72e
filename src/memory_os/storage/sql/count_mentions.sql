-- Sets the counts of an entity whose id was mentioned before its row came (back): from then on the triggers keep them.
UPDATE entities AS e
SET mention_records = m.records, mention_occurrences = m.occurrences, mention_confidence = m.confidence,
    first_seen = least(e.first_seen, m.first_seen), last_seen = greatest(e.last_seen, m.last_seen)
FROM (SELECT count(DISTINCT memory_id)::int AS records, coalesce(sum(occurrences), 0)::int AS occurrences,
             coalesce(max(confidence), 0) AS confidence, min(seen) AS first_seen, max(seen) AS last_seen
      FROM mentions WHERE tenant_id = %(tenant_id)s AND entity_id = %(id)s) AS m
WHERE e.tenant_id = %(tenant_id)s AND e.id = %(id)s
