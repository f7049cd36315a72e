-- The states and readers of memories, held in the order of their ids.
SELECT id, label, status, valid_from, valid_to, superseded_by, exact_key, visibility, user_id, reader_users, reader_groups
FROM memories WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s::uuid[])
ORDER BY id FOR UPDATE
