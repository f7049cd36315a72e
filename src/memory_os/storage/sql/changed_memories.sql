-- The next live memories, by id, that were stored or changed after a moment (null: all). Those that this run has merged
-- away count as they were before that, so that a run looks at the same ones whether it merges or only predicts.
SELECT m.id FROM memories AS m
WHERE m.tenant_id = %(tenant_id)s AND m.id > %(after)s::uuid
  AND ((m.status IN ('active', 'disputed')
        AND greatest(m.created_at, m.updated_at) > coalesce(%(since)s::timestamptz, '-infinity'))
       OR (m.status = 'archived' AND EXISTS (
           SELECT FROM cycle_actions AS a
           WHERE a.tenant_id = %(tenant_id)s AND a.target_id = m.id AND a.run_id = %(run_id)s AND a.rule = %(rule)s
             AND a.undone_at IS NULL
             AND greatest(m.created_at, (a.before ->> 'updated_at')::timestamptz)
                 > coalesce(%(since)s::timestamptz, '-infinity'))))
ORDER BY m.id LIMIT %(batch)s
