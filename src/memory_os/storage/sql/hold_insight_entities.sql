-- Entities that candidates are about to be made of, with their readers, held until the end of the transaction.
SELECT id, visibility, user_id, reader_users, reader_groups FROM entities
WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s::uuid[])
ORDER BY id FOR SHARE
