-- An accepted Insight goes with what it was made of, while it still has a line or the title of its candidate: the words are
-- its members'. What somebody has put into words of their own stays. The graph is told as of any deletion, if the tenant has
-- one or is about to have one.
CREATE FUNCTION insight_memory_forget(tenant uuid, insight uuid, made_title text, made_text text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    gone record;
BEGIN
    SELECT m.version, m.title, m.text INTO gone FROM memories AS m WHERE m.tenant_id = tenant AND m.id = insight FOR UPDATE;
    IF NOT FOUND OR NOT (coalesce(gone.title = made_title, false) OR EXISTS (
        SELECT 1 FROM regexp_split_to_table(made_text, E'\n') AS line WHERE line <> '' AND strpos(gone.text, line) > 0)) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT 1 FROM graph_states AS g WHERE g.tenant_id = tenant)
       OR EXISTS (SELECT 1 FROM outbox_events AS o WHERE o.tenant_id = tenant AND o.aggregate_id = insight) THEN
        WITH relations AS MATERIALIZED (
            SELECT 'edge' AS kind, e.id, e.version, ARRAY[e.source_entity_id, e.target_entity_id] AS entities
            FROM edges AS e WHERE e.tenant_id = tenant AND e.source_memory_id = insight
            UNION ALL
            SELECT 'edge', e.id, e.version, ARRAY[e.source_entity_id, e.target_entity_id]
            FROM edges AS e WHERE e.tenant_id = tenant AND e.target_memory_id = insight
            UNION ALL
            SELECT 'entity_link', l.id, l.version, ARRAY[l.entity_id]
            FROM entity_links AS l WHERE l.tenant_id = tenant AND l.target_memory_id = insight
        ),
        named AS MATERIALIZED (
            SELECT DISTINCT n.entity_id FROM mentions AS n WHERE n.tenant_id = tenant AND n.memory_id = insight
        )
        INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, payload)
        SELECT tenant, 'GRAPH_DELETE', 'memory', insight, gone.version + 1,
               CASE WHEN EXISTS (SELECT 1 FROM named)
                    THEN jsonb_build_object('mentioned', (SELECT jsonb_agg(entity_id ORDER BY entity_id) FROM named))
                    ELSE '{}' END
        UNION ALL
        SELECT tenant, 'GRAPH_DELETE', r.kind, r.id, r.version + 1, '{}' FROM relations AS r
        UNION ALL
        (SELECT tenant, 'GRAPH_UPSERT', 'entity', e.id, 1, '{}' FROM entities AS e
         WHERE e.tenant_id = tenant AND NOT e.declared
           AND e.id IN (SELECT beside.id FROM relations AS r, unnest(r.entities) AS beside (id)));
        PERFORM pg_notify('memory_os_outbox', '');
    END IF;
    DELETE FROM memories AS m WHERE m.tenant_id = tenant AND m.id = insight;
END $$;

-- A candidate that has lost a memory goes, whatever became of it, and takes its Insight with it; one that has lost an entity
-- goes while nobody has decided about it.
CREATE FUNCTION insights_forget() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    made record;
BEGIN
    FOR made IN
        SELECT c.tenant_id, c.id, c.memory_id, c.title, c.text FROM insight_candidates AS c
        WHERE EXISTS (SELECT 1 FROM old_rows AS o WHERE o.tenant_id = c.tenant_id AND o.candidate_id = c.id
                      AND (o.memory_id IS NOT NULL OR c.status = 'open'))
        ORDER BY c.id FOR UPDATE
    LOOP
        DELETE FROM insight_candidates AS c WHERE c.tenant_id = made.tenant_id AND c.id = made.id;
        IF made.memory_id IS NOT NULL THEN
            PERFORM insight_memory_forget(made.tenant_id, made.memory_id, made.title, made.text);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- A record that is withdrawn or gets other readers leaves all candidates. One that says something else, or does not hold any
-- more, leaves those that nobody has decided about: these are to be made anew.
CREATE FUNCTION insights_of_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF TG_TABLE_NAME = 'entities' THEN
        DELETE FROM insight_members AS i WHERE i.tenant_id = NEW.tenant_id AND i.entity_id = NEW.id;
    ELSIF NEW.status = 'retracted' OR (OLD.visibility, OLD.user_id, OLD.reader_users, OLD.reader_groups)
            IS DISTINCT FROM (NEW.visibility, NEW.user_id, NEW.reader_users, NEW.reader_groups) THEN
        DELETE FROM insight_members AS i WHERE i.tenant_id = NEW.tenant_id AND i.memory_id = NEW.id;
    ELSIF NEW.status NOT IN ('active', 'completed')
            OR (OLD.label, OLD.text, OLD.title) IS DISTINCT FROM (NEW.label, NEW.text, NEW.title) THEN
        DELETE FROM insight_members AS i USING insight_candidates AS c
        WHERE i.tenant_id = NEW.tenant_id AND i.memory_id = NEW.id AND c.tenant_id = i.tenant_id
          AND c.id = i.candidate_id AND c.status = 'open';
    END IF;
    RETURN NULL;
END $$;
