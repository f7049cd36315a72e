-- The next active Behaviors, by id, that have not grown into anything: how many memories merged into each, and how many
-- distinct sources bear it out that all of its readers may read.
SELECT m.id, m.visibility, m.user_id, m.reader_users, m.reader_groups, merged.times AS merges, borne.times AS sources
FROM memories AS m
CROSS JOIN LATERAL (
    SELECT count(*) AS times FROM (
        SELECT a.id FROM memory_acts AS a
        WHERE a.tenant_id = m.tenant_id AND a.memory_id = m.id AND a.other_id IS NULL AND a.kind = 'merge'
          AND a.undone_at IS NULL
        UNION ALL
        SELECT a.id FROM memory_acts AS a
        WHERE a.tenant_id = m.tenant_id AND a.other_id = m.id AND a.kind = 'merge' AND a.undone_at IS NULL) AS done
) AS merged
CROSS JOIN LATERAL (
    SELECT count(DISTINCT e.source_id) AS times FROM evidence AS e
    WHERE e.tenant_id = m.tenant_id AND e.memory_id = m.id AND e.withdrawn_at IS NULL
      AND e.support IN ('states', 'supports')
      AND memory_os_covers(e.visibility, e.user_id, e.reader_users, e.reader_groups,
                           m.visibility, m.user_id, m.reader_users, m.reader_groups)
) AS borne
WHERE m.tenant_id = %(tenant_id)s AND m.id > %(after)s::uuid AND m.label = 'Behavior' AND m.status = 'active'
  AND m.origin IS DISTINCT FROM %(origin)s
  AND NOT EXISTS (SELECT 1 FROM edges AS g WHERE g.tenant_id = m.tenant_id AND g.source_memory_id = m.id
                  AND g.type = 'EVOLVED_INTO')
ORDER BY m.id LIMIT %(batch)s
