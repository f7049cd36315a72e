-- Records that are no memories, table by table. Names, links and edges of entities are gone already, or go with these.
WITH gone AS MATERIALIZED (SELECT id FROM unnest(%(others)s::uuid[]) AS given (id)),
origins AS (DELETE FROM sources AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.id = gone.id RETURNING 1),
names AS (
    DELETE FROM entity_names AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.entity_id = gone.id RETURNING 1
),
acts AS (
    DELETE FROM entity_acts AS t
    WHERE t.tenant_id = %(tenant_id)s AND (t.entity_id IN (SELECT id FROM gone) OR t.other_id IN (SELECT id FROM gone))
    RETURNING 1
),
named AS (DELETE FROM entities AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.id = gone.id RETURNING 1),
seen AS (DELETE FROM observations AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.id = gone.id RETURNING 1),
ways AS (DELETE FROM procedures AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.id = gone.id RETURNING 1),
ends AS (DELETE FROM outcomes AS t USING gone WHERE t.tenant_id = %(tenant_id)s AND t.id = gone.id RETURNING 1)
SELECT (SELECT count(*) FROM origins) AS sources, (SELECT count(*) FROM names) AS entity_names,
       (SELECT count(*) FROM acts) AS entity_acts, (SELECT count(*) FROM named) AS entities,
       (SELECT count(*) FROM seen) AS observations, (SELECT count(*) FROM ways) AS procedures,
       (SELECT count(*) FROM ends) AS outcomes
