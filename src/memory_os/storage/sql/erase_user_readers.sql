-- Others' records that the user was among the readers of: these have one reader less. Copies follow by trigger. The key of
-- equal texts is made of the readers as well: without one, the memory has its near ones all the same.
WITH told AS (
    UPDATE memories AS t SET reader_users = array_remove(t.reader_users, %(user)s), exact_key = NULL
    WHERE t.tenant_id = %(tenant_id)s AND %(user)s = ANY (t.reader_users) RETURNING 1
),
named AS (
    UPDATE entities AS t SET reader_users = array_remove(t.reader_users, %(user)s)
    WHERE t.tenant_id = %(tenant_id)s AND %(user)s = ANY (t.reader_users) RETURNING 1
),
seen AS (
    UPDATE observations AS t SET reader_users = array_remove(t.reader_users, %(user)s)
    WHERE t.tenant_id = %(tenant_id)s AND %(user)s = ANY (t.reader_users) RETURNING 1
),
ways AS (
    UPDATE procedures AS t SET reader_users = array_remove(t.reader_users, %(user)s)
    WHERE t.tenant_id = %(tenant_id)s AND %(user)s = ANY (t.reader_users) RETURNING 1
),
ends AS (
    UPDATE outcomes AS t SET reader_users = array_remove(t.reader_users, %(user)s)
    WHERE t.tenant_id = %(tenant_id)s AND %(user)s = ANY (t.reader_users) RETURNING 1
),
origins AS (
    UPDATE sources AS t SET reader_users = array_remove(t.reader_users, %(user)s)
    WHERE t.tenant_id = %(tenant_id)s AND %(user)s = ANY (t.reader_users) RETURNING 1
)
SELECT (SELECT count(*) FROM told) AS memories, (SELECT count(*) FROM named) AS entities,
       (SELECT count(*) FROM seen) AS observations, (SELECT count(*) FROM ways) AS procedures,
       (SELECT count(*) FROM ends) AS outcomes, (SELECT count(*) FROM origins) AS sources
