-- After an entity was declared, renamed, aliased or deleted: the memories whose mentions no longer say what the names say
-- have their mark of extraction emptied and get an event, so that they are extracted and projected anew like any other.
WITH own_names AS MATERIALIZED (
    SELECT canonical_name FROM entity_names WHERE tenant_id = %(tenant_id)s AND entity_id = %(entity_id)s
),
-- mentions of the entity under a name that it does not have (any more); for a deleted one that is all of them. A derived
-- one has no declared names, and its mentions are right as long as it is there.
misnamed AS (
    SELECT m.memory_id FROM mentions AS m
    WHERE m.tenant_id = %(tenant_id)s AND m.entity_id = %(entity_id)s
      AND m.canonical_name NOT IN (SELECT canonical_name FROM own_names)
      AND NOT EXISTS (SELECT 1 FROM entities AS e
                      WHERE e.tenant_id = %(tenant_id)s AND e.id = %(entity_id)s AND NOT e.declared)
),
-- mentions of one of its names that point at another entity
misdirected AS (
    SELECT m.memory_id FROM mentions AS m JOIN own_names AS n ON n.canonical_name = m.canonical_name
    WHERE m.tenant_id = %(tenant_id)s AND m.entity_id <> %(entity_id)s
),
-- texts with one of its names that the extractor passed over while nobody had declared it
unmentioned AS (
    SELECT s.id AS memory_id FROM own_names AS n
    JOIN memories AS s ON s.tenant_id = %(tenant_id)s AND s.search @@ phraseto_tsquery('simple', n.canonical_name)
    WHERE NOT EXISTS (SELECT 1 FROM mentions AS m WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = s.id
                      AND m.canonical_name = n.canonical_name)
),
again AS MATERIALIZED (
    SELECT memory_id FROM misnamed UNION SELECT memory_id FROM misdirected UNION SELECT memory_id FROM unmentioned
),
unmarked AS (
    UPDATE extractions AS x SET extractor = '' FROM again AS a
    WHERE x.tenant_id = %(tenant_id)s AND x.memory_id = a.memory_id
)
INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, request_id)
SELECT %(tenant_id)s, 'GRAPH_UPSERT', 'memory', m.id, m.version, %(request_id)s
FROM memories AS m JOIN again AS a ON a.memory_id = m.id
WHERE m.tenant_id = %(tenant_id)s
