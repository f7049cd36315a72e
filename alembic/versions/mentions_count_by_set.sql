-- Keeps the counts that every weight in the graph is a function of: how many records and occurrences name an entity,
-- with what best confidence, and how many records name both entities of a pair. It runs in the transaction of whatever
-- changed the mentions (a worker, or a memory's deletion cascading), so the counts are exact whenever they are visible.
-- It runs as the owner, so that a reader who deletes a memory also counts down names that only others' memories share.
CREATE FUNCTION mentions_count() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid;
    added bigint;     -- rows that an INSERT brought
    known boolean;    -- whether memories with new mentions had others before
    changed uuid[];   -- memories whose mentions changed
    gone jsonb := '[]';
    come jsonb := '[]';
    touched uuid[];   -- entities whose counts change
BEGIN
    -- The usual case, made cheap: the first mentions of memories. Everything is added, nothing was there to compare with.
    IF TG_OP = 'INSERT' THEN
        SELECT (array_agg(tenant_id))[1], array_agg(DISTINCT memory_id), count(*)
        INTO tenant, changed, added FROM new_rows;
        SELECT count(*) > added INTO known FROM mentions WHERE tenant_id = tenant AND memory_id = ANY (changed);
        IF NOT known THEN
            -- Locks in the order of the ids, so that two transactions can't wait for each other in a circle. The ids
            -- are given as an array as well: as long as a young table has no statistics, a join alone is planned as a
            -- scan of the whole (measured 300 ms instead of 5).
            SELECT array_agg(DISTINCT entity_id) INTO touched FROM new_rows;
            PERFORM 1 FROM entities WHERE tenant_id = tenant AND id = ANY (touched) ORDER BY id FOR NO KEY UPDATE;
            UPDATE entities AS e
            SET mention_records = e.mention_records + c.records,
                mention_occurrences = e.mention_occurrences + c.occurrences,
                mention_confidence = greatest(e.mention_confidence, c.confidence),
                first_seen = least(e.first_seen, c.first_seen),
                last_seen = greatest(e.last_seen, c.last_seen)
            FROM (SELECT entity_id, count(DISTINCT memory_id)::int AS records, sum(occurrences)::int AS occurrences,
                         max(confidence) AS confidence, min(seen) AS first_seen, max(seen) AS last_seen
                  FROM new_rows GROUP BY entity_id) AS c
            WHERE e.tenant_id = tenant AND e.id = ANY (touched) AND e.id = c.entity_id;
            INSERT INTO entity_pairs (tenant_id, entity_a, entity_b, records)
            SELECT x.tenant_id, x.entity_id, y.entity_id, count(DISTINCT x.memory_id)::int
            FROM new_rows AS x JOIN new_rows AS y ON x.memory_id = y.memory_id AND x.entity_id < y.entity_id
            GROUP BY x.tenant_id, x.entity_id, y.entity_id ORDER BY x.entity_id, y.entity_id
            ON CONFLICT (tenant_id, entity_a, entity_b) DO UPDATE
            SET records = entity_pairs.records + excluded.records;
            RETURN NULL;
        END IF;
    END IF;

    IF TG_OP IN ('DELETE', 'UPDATE') THEN
        SELECT coalesce(jsonb_agg(jsonb_build_array(memory_id, canonical_name, entity_id, occurrences)), '[]'),
               (array_agg(tenant_id))[1]
        INTO gone, tenant FROM old_rows;
    END IF;
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        SELECT coalesce(jsonb_agg(jsonb_build_array(memory_id, canonical_name, entity_id, occurrences)), '[]'),
               coalesce((array_agg(tenant_id))[1], tenant)
        INTO come, tenant FROM new_rows;
    END IF;
    IF tenant IS NULL THEN
        RETURN NULL;  -- a statement that touched no row
    END IF;

    SELECT array_agg(DISTINCT (row ->> 0)::uuid), array_agg(DISTINCT (row ->> 2)::uuid)
    INTO changed, touched
    FROM jsonb_array_elements(gone || come) AS row;

    -- Locks in the order of the ids, so that two transactions can't wait for each other in a circle.
    PERFORM 1 FROM entities WHERE tenant_id = tenant AND id = ANY (touched) ORDER BY id FOR UPDATE;

    WITH now_there AS (
        SELECT memory_id, canonical_name, entity_id FROM mentions
        WHERE tenant_id = tenant AND memory_id = ANY (changed)
    ),
    old_row AS (
        SELECT (row ->> 0)::uuid AS memory_id, (row ->> 2)::uuid AS entity_id, (row ->> 3)::int AS occurrences
        FROM jsonb_array_elements(gone) AS row
    ),
    new_row AS (
        SELECT (row ->> 0)::uuid AS memory_id, row ->> 1 AS canonical_name, (row ->> 2)::uuid AS entity_id,
               (row ->> 3)::int AS occurrences
        FROM jsonb_array_elements(come) AS row
    ),
    after_set AS (SELECT DISTINCT memory_id, entity_id FROM now_there),
    before_set AS (
        SELECT memory_id, entity_id FROM now_there
        WHERE NOT EXISTS (SELECT 1 FROM new_row AS n
                          WHERE n.memory_id = now_there.memory_id AND n.canonical_name = now_there.canonical_name)
        UNION
        SELECT memory_id, entity_id FROM old_row
    ),
    record_delta AS (
        SELECT entity_id, sum(d)::int AS d FROM (
            SELECT entity_id, 1 AS d FROM after_set UNION ALL SELECT entity_id, -1 FROM before_set
        ) AS x GROUP BY entity_id
    ),
    occurrence_delta AS (
        SELECT entity_id, sum(d)::int AS d FROM (
            SELECT entity_id, occurrences AS d FROM new_row UNION ALL SELECT entity_id, -occurrences FROM old_row
        ) AS x GROUP BY entity_id
    )
    UPDATE entities AS e
    SET mention_records = e.mention_records + coalesce(r.d, 0),
        mention_occurrences = e.mention_occurrences + coalesce(o.d, 0),
        mention_confidence = coalesce((SELECT m.confidence FROM mentions AS m
                                       WHERE m.tenant_id = tenant AND m.entity_id = e.id
                                       ORDER BY m.confidence DESC LIMIT 1), 0)
    FROM unnest(touched) AS t (entity_id)
         LEFT JOIN record_delta AS r ON r.entity_id = t.entity_id
         LEFT JOIN occurrence_delta AS o ON o.entity_id = t.entity_id
    WHERE e.tenant_id = tenant AND e.id = t.entity_id;

    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        UPDATE entities AS e
        SET first_seen = least(e.first_seen, n.first_seen), last_seen = greatest(e.last_seen, n.last_seen)
        FROM (SELECT entity_id, min(seen) AS first_seen, max(seen) AS last_seen FROM new_rows GROUP BY entity_id) AS n
        WHERE e.tenant_id = tenant AND e.id = n.entity_id;
    END IF;

    WITH now_there AS (
        SELECT memory_id, canonical_name, entity_id FROM mentions
        WHERE tenant_id = tenant AND memory_id = ANY (changed)
    ),
    old_row AS (
        SELECT (row ->> 0)::uuid AS memory_id, (row ->> 2)::uuid AS entity_id FROM jsonb_array_elements(gone) AS row
    ),
    new_row AS (
        SELECT (row ->> 0)::uuid AS memory_id, row ->> 1 AS canonical_name FROM jsonb_array_elements(come) AS row
    ),
    after_set AS (SELECT DISTINCT memory_id, entity_id FROM now_there),
    before_set AS (
        SELECT memory_id, entity_id FROM now_there
        WHERE NOT EXISTS (SELECT 1 FROM new_row AS n
                          WHERE n.memory_id = now_there.memory_id AND n.canonical_name = now_there.canonical_name)
        UNION
        SELECT memory_id, entity_id FROM old_row
    ),
    pair_delta AS (
        SELECT entity_a, entity_b, sum(d)::int AS d FROM (
            SELECT x.entity_id AS entity_a, y.entity_id AS entity_b, 1 AS d
            FROM after_set AS x JOIN after_set AS y ON x.memory_id = y.memory_id AND x.entity_id < y.entity_id
            UNION ALL
            SELECT x.entity_id, y.entity_id, -1
            FROM before_set AS x JOIN before_set AS y ON x.memory_id = y.memory_id AND x.entity_id < y.entity_id
        ) AS z GROUP BY entity_a, entity_b HAVING sum(d) <> 0
    ),
    emptied AS (
        DELETE FROM entity_pairs AS p USING pair_delta AS d
        WHERE p.tenant_id = tenant AND p.entity_a = d.entity_a AND p.entity_b = d.entity_b AND p.records + d.d <= 0
    ),
    lessened AS (
        UPDATE entity_pairs AS p SET records = p.records + d.d FROM pair_delta AS d
        WHERE p.tenant_id = tenant AND p.entity_a = d.entity_a AND p.entity_b = d.entity_b
          AND d.d < 0 AND p.records + d.d > 0
    )
    INSERT INTO entity_pairs (tenant_id, entity_a, entity_b, records)
    SELECT tenant, d.entity_a, d.entity_b, d.d FROM pair_delta AS d WHERE d.d > 0
    ORDER BY d.entity_a, d.entity_b
    ON CONFLICT (tenant_id, entity_a, entity_b) DO UPDATE SET records = entity_pairs.records + excluded.records;
    RETURN NULL;
END $$;
