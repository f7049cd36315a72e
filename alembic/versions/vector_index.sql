-- What keeps the index of vectors true, and what builds and drops a tenant's partition of it.
--
-- The index holds only vectors that the whole tenant may read. A vector leaves it in the transaction that makes it
-- another one, narrows its readers or deletes it. The marks on the vectors (`indexed`) are not asked for that: as long as
-- a build is being marked, the index holds vectors whose mark is still to come.
--
-- Advisory locks, the second half of the first two being a hash of the tenant:
--   1297045080 ("MOVX")  one indexer works on a tenant at a time
--   1297045081 ("MOVY")  held, shared, by whoever changes or deletes a vector; a build takes it alone for its last steps
--   1297045082 ("MOVZ")  one build goes on in a database at a time

CREATE FUNCTION memory_vector_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1297045081, hashtext(OLD.tenant_id::text));
    IF EXISTS (SELECT FROM vector_partitions AS p WHERE p.tenant_id = OLD.tenant_id AND p.model = OLD.model) THEN
        DELETE FROM vector_index AS v
        WHERE v.tenant_id = OLD.tenant_id AND v.kind = 'memory' AND v.record_id = OLD.memory_id;
    END IF;
    NEW.indexed := false;
    RETURN NEW;
END $$;

CREATE FUNCTION passage_vector_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1297045081, hashtext(OLD.tenant_id::text));
    IF EXISTS (SELECT FROM vector_partitions AS p WHERE p.tenant_id = OLD.tenant_id AND p.model = OLD.model) THEN
        DELETE FROM vector_index AS v
        WHERE v.tenant_id = OLD.tenant_id AND v.kind = 'passage' AND v.record_id = OLD.passage_id;
    END IF;
    NEW.indexed := false;
    RETURN NEW;
END $$;

-- The argument is the kind. Each statement deletes vectors of one tenant, but nothing here relies on it.
CREATE FUNCTION vectors_gone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    gone record;
BEGIN
    FOR gone IN SELECT DISTINCT o.tenant_id, o.model FROM old_rows AS o LOOP
        PERFORM pg_advisory_xact_lock_shared(1297045081, hashtext(gone.tenant_id::text));
        IF NOT EXISTS (SELECT FROM vector_partitions AS p WHERE p.tenant_id = gone.tenant_id AND p.model = gone.model) THEN
            CONTINUE;
        END IF;
        IF TG_ARGV[0] = 'memory' THEN
            DELETE FROM vector_index AS v WHERE v.tenant_id = gone.tenant_id AND v.kind = 'memory' AND v.record_id IN (
                SELECT o.memory_id FROM old_rows AS o WHERE o.tenant_id = gone.tenant_id AND o.model = gone.model);
        ELSE
            DELETE FROM vector_index AS v WHERE v.tenant_id = gone.tenant_id AND v.kind = 'passage' AND v.record_id IN (
                SELECT o.passage_id FROM old_rows AS o WHERE o.tenant_id = gone.tenant_id AND o.model = gone.model);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- To drop a partition takes the whole table for a moment. Searches would queue behind whoever waits for it, so at first
-- it is not waited for.
CREATE FUNCTION lock_vector_index() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    FOR attempt IN 1..100 LOOP
        BEGIN
            LOCK TABLE ONLY public.vector_index IN ACCESS EXCLUSIVE MODE NOWAIT;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM pg_sleep(0.05);
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', '2s', true);
    LOCK TABLE ONLY public.vector_index IN ACCESS EXCLUSIVE MODE;
END $$;

-- Builds a tenant's partition anew from all its vectors of a model that the whole tenant may read, and puts it in place of
-- the one that there was. Returns how many vectors it holds; NULL if another indexer is at work. The marks are the
-- caller's to set.
-- All of it is one transaction: nobody sees half a partition, and nothing is left of a build that was killed. Those who
-- change or delete vectors meanwhile are not kept waiting; at the end the build waits until such changes are committed,
-- keeps new ones out for its last steps, and takes out of the partition whatever is no longer as it was read.
CREATE FUNCTION build_vector_index(tenant uuid, of_model text, of_dimension int, memory_mb int) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    fresh text := 'vector_index_' || replace(tenant::text, '-', '') || '_a';
    old text := 'vector_index_' || replace(tenant::text, '-', '') || '_b';
    total bigint;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('memory_os.tenant_id', true), '')::uuid OR tenant IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'this transaction has not entered that tenant';
    END IF;
    IF of_model IS NULL OR coalesce(of_dimension NOT BETWEEN 1 AND 4000, true)
       OR coalesce(memory_mb NOT BETWEEN 1 AND 65536, true) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'no such index can be built';
    END IF;
    IF NOT pg_try_advisory_xact_lock(1297045082, 0)
       OR NOT pg_try_advisory_xact_lock(1297045080, hashtext(tenant::text)) THEN
        RETURN NULL;
    END IF;
    IF to_regclass('public.' || fresh) IS NOT NULL THEN
        SELECT old, fresh INTO fresh, old;
    END IF;
    -- One process with bounded memory; and if the worker is killed, this does not go on for minutes without it.
    PERFORM set_config('maintenance_work_mem', memory_mb || 'MB', true),
            set_config('max_parallel_maintenance_workers', '0', true),
            set_config('client_connection_check_interval', '1s', true);
    EXECUTE format('CREATE TABLE public.%I (LIKE public.vector_index INCLUDING STORAGE INCLUDING CONSTRAINTS)', fresh);
    EXECUTE format($sql$
        INSERT INTO public.%I (tenant_id, kind, record_id, source_id, embedding)
        SELECT e.tenant_id, 'memory', e.memory_id, NULL::uuid, e.embedding::halfvec FROM public.memory_embeddings AS e
        WHERE e.tenant_id = $1 AND e.model = $2 AND e.dimension = $3 AND e.visibility = 'tenant'
        UNION ALL
        SELECT e.tenant_id, 'passage', e.passage_id, e.source_id, e.embedding::halfvec
        FROM public.passage_embeddings AS e
        WHERE e.tenant_id = $1 AND e.model = $2 AND e.dimension = $3 AND e.visibility = 'tenant'
        $sql$, fresh) USING tenant, of_model, of_dimension;
    EXECUTE format('ALTER TABLE public.%I ADD PRIMARY KEY (tenant_id, kind, record_id), ADD CHECK (tenant_id = %L)',
                   fresh, tenant);
    EXECUTE format('CREATE INDEX %I ON public.%I USING hnsw ((embedding::halfvec(%s)) halfvec_cosine_ops)',
                   fresh || '_hnsw', fresh, of_dimension);
    EXECUTE format('ANALYZE public.%I', fresh);

    PERFORM pg_advisory_xact_lock(1297045081, hashtext(tenant::text));
    EXECUTE format($sql$
        DELETE FROM public.%I AS f
        WHERE (f.kind = 'memory' AND NOT EXISTS (
                  SELECT FROM public.memory_embeddings AS e
                  WHERE e.tenant_id = $1 AND e.memory_id = f.record_id AND e.model = $2 AND e.visibility = 'tenant'
                    AND e.embedding::halfvec = f.embedding))
           OR (f.kind = 'passage' AND NOT EXISTS (
                  SELECT FROM public.passage_embeddings AS e
                  WHERE e.tenant_id = $1 AND e.passage_id = f.record_id AND e.model = $2 AND e.visibility = 'tenant'
                    AND e.source_id = f.source_id AND e.embedding::halfvec = f.embedding))
        $sql$, fresh) USING tenant, of_model;
    IF to_regclass('public.' || old) IS NOT NULL THEN
        PERFORM lock_vector_index();
        EXECUTE format('DROP TABLE public.%I', old);
    END IF;
    EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', fresh);
    EXECUTE format('CREATE POLICY %I ON public.%I USING (false)', fresh || '_none', fresh);
    EXECUTE format('ALTER TABLE public.vector_index ATTACH PARTITION public.%I FOR VALUES IN (%L)', fresh, tenant);
    SELECT count(*) INTO total FROM vector_index AS v WHERE v.tenant_id = tenant;
    INSERT INTO vector_partitions AS p (tenant_id, model, dimension, rows) VALUES (tenant, of_model, of_dimension, total)
    ON CONFLICT (tenant_id) DO UPDATE
    SET model = excluded.model, dimension = excluded.dimension, rows = excluded.rows, marked = false,
        built_at = excluded.built_at;
    RETURN total;
END $$;

-- Drops a tenant's partition with its marks: every search scans all of its vectors again. Returns whether it did; false if
-- another indexer is at work.
CREATE FUNCTION drop_vector_index(tenant uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('memory_os.tenant_id', true), '')::uuid OR tenant IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'this transaction has not entered that tenant';
    END IF;
    IF NOT pg_try_advisory_xact_lock(1297045080, hashtext(tenant::text)) THEN
        RETURN false;
    END IF;
    UPDATE memory_embeddings AS e SET indexed = false WHERE e.tenant_id = tenant AND e.indexed;
    UPDATE passage_embeddings AS e SET indexed = false WHERE e.tenant_id = tenant AND e.indexed;
    DELETE FROM vector_partitions AS p WHERE p.tenant_id = tenant;
    PERFORM lock_vector_index();
    EXECUTE format('DROP TABLE IF EXISTS public.%I', 'vector_index_' || replace(tenant::text, '-', '') || '_a');
    EXECUTE format('DROP TABLE IF EXISTS public.%I', 'vector_index_' || replace(tenant::text, '-', '') || '_b');
    RETURN true;
END $$;

-- The vectors in a tenant's partition that are nearest to one, about in order of their distance in half precision; none if
-- there is no partition for the model. It runs as the one who asks, under the policies. As the statement is planned anew
-- each time, its plan has one partition; and with sorting off, the planner has nothing but the index to get the order from.
-- It is stable, so that it sees the marks and the index as of one moment; of a partition that was put in place of another
-- one after that moment it sees no rows.
CREATE FUNCTION near_vectors(tenant uuid, of_model text, wanted vector, reach int)
RETURNS TABLE (kind text, record_id uuid, source_id uuid, distance double precision)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp SET enable_sort = off AS $$
DECLARE
    size int;
BEGIN
    SELECT p.dimension INTO size FROM vector_partitions AS p WHERE p.tenant_id = tenant AND p.model = of_model;
    IF size IS DISTINCT FROM vector_dims(wanted) THEN
        RETURN;
    END IF;
    -- What is beyond the width of one round comes from further rounds, as long as it takes.
    PERFORM set_config('hnsw.ef_search', least(1000, greatest(120, reach))::text, true),
            set_config('hnsw.iterative_scan', 'relaxed_order', true),
            set_config('hnsw.max_scan_tuples', '2147483647', true),
            set_config('hnsw.scan_mem_multiplier', '16', true);
    RETURN QUERY EXECUTE format($sql$
        SELECT v.kind, v.record_id, v.source_id, v.embedding::halfvec(%1$s) <=> $2::halfvec(%1$s)
        FROM public.vector_index AS v WHERE v.tenant_id = $1
        ORDER BY v.embedding::halfvec(%1$s) <=> $2::halfvec(%1$s) LIMIT $3
        $sql$, size) USING tenant, wanted, reach;
END $$;
