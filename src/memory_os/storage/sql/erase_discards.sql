-- Why somebody gave an event up, and of what it had died: either may hold what goes.
UPDATE audit_log AS a SET detail = a.detail - 'reason' - 'last_error'
WHERE a.tenant_id = %(tenant_id)s AND a.target_type = 'outbox_event'
  AND (a.target_id IN (SELECT id::text FROM unnest(%(events)s::bigint[]) AS given (id))
       OR a.detail ->> 'aggregate_id' IN (SELECT id::text FROM unnest(%(about)s::uuid[]) AS given (id)))
  AND a.detail ?| ARRAY['reason', 'last_error']
