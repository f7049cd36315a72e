-- Evidence of memories and from sources that go; the ids are for the log of what was done to it.
WITH gone AS MATERIALIZED (
    SELECT e.id FROM unnest(%(memories)s::uuid[]) AS given (id)
    JOIN evidence AS e ON e.tenant_id = %(tenant_id)s AND e.memory_id = given.id
    UNION
    SELECT e.id FROM unnest(%(sources)s::uuid[]) AS given (id)
    JOIN evidence AS e ON e.tenant_id = %(tenant_id)s AND e.source_id = given.id
)
DELETE FROM evidence AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.id = gone.id RETURNING t.id
