-- A memory is about to be deleted, and its acts with it. Some of them changed other memories too (one that took its place got
-- its beginning from that): what these were before is handed on to them, so that it stays known how they once stood.
INSERT INTO memory_acts (tenant_id, id, memory_id, kind, detail, before, token_id, role, user_id, request_id, at)
SELECT a.tenant_id, gen_random_uuid(), m.id, 'change', jsonb_build_object('with_deleted', a.kind),
       jsonb_build_object('memories', jsonb_build_array(state.kept)), a.token_id, a.role, a.user_id, a.request_id, a.at
FROM memory_acts AS a
     CROSS JOIN LATERAL jsonb_array_elements(a.before -> 'memories') AS state (kept)
     JOIN memories AS m ON m.tenant_id = a.tenant_id AND m.id = (state.kept ->> 'id')::uuid
WHERE a.tenant_id = %(tenant_id)s AND a.memory_id = %(memory_id)s AND m.id <> %(memory_id)s
