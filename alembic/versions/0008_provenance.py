"""Where memories come from and what becomes of them: sources, evidence, corrections, erasures, acts on entities."""

from __future__ import annotations

from alembic import op
from rls import IS_STEWARD, SAME_TENANT, VISIBLE_OR_STEWARD, enable_tenancy, seen_one

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_READERS = """
    visibility text NOT NULL CHECK (visibility IN ('tenant', 'private', 'restricted')),
    user_id text,
    reader_users text[] NOT NULL DEFAULT '{}',
    reader_groups text[] NOT NULL DEFAULT '{}'
"""
_ACTOR = "token_id uuid, role text NOT NULL, acting_user text, request_id text"
_ADMIN = f"(SELECT current_setting('memory_os.role', true)) = 'admin' OR {IS_STEWARD}"
_LAYERS = ("entity", "memory", "observation", "procedure", "outcome")
_ERASING = (
    ("DELETE", "retrieval_edges"),
    ("DELETE", "retrieval_feedback"),
    ("UPDATE (user_id, target_id, detail)", "audit_log"),
    ("UPDATE (content, user_id, reader_users)", "audit_contents"),
    ("UPDATE (user_id, requested_by)", "graph_rebuilds"),
    ("UPDATE (sample, requested_by, status, phase)", "graph_verifications"),
)
"""What an erasure does to tables whose rows nothing else changes or deletes for a client."""


def upgrade() -> None:
    """Make the tables."""
    _sources()
    _evidence()
    _sharing()
    _links_to_sources()
    _corrections()
    _entity_acts()
    _erasures()
    _erasing()
    _covering()


def downgrade() -> None:
    """Drop them. Links to sources go too, since nothing is at their other end any more."""
    op.execute("DROP FUNCTION memory_os_covers(text, text, text[], text[], text, text, text[], text[])")
    _sketch_triggers(_EACH_ROW)
    op.execute("DROP FUNCTION sketches_of_deleted()")
    for layer in _LAYERS:
        op.execute(f"DROP INDEX entity_links_to_{layer}")
    for granted, table in _ERASING:
        op.execute(f"REVOKE {granted} ON {table} FROM memory_os_app")
    op.execute("ALTER TABLE idempotency_keys DROP COLUMN erased_at, DROP COLUMN record_ids")
    op.execute("REVOKE UPDATE (lease_until) ON projection_leases FROM memory_os_app")
    for table in ("erasures", "entity_acts", "corrections"):
        op.execute(f"DROP TABLE {table} CASCADE")
    op.execute("ALTER TABLE entity_links NO FORCE ROW LEVEL SECURITY")
    op.execute("DELETE FROM entity_links WHERE layer = 'source'")
    op.execute("ALTER TABLE entity_links FORCE ROW LEVEL SECURITY")
    _link_policy("")
    op.execute("ALTER TABLE entity_links DROP COLUMN target_source_id")
    _link_layers(_LAYERS)
    for table in ("evidence", "passage_embeddings", "passages", "sources"):
        op.execute(f"DROP TABLE {table} CASCADE")
    for function in ("support_readers", "passage_readers", "passage_seen", "corrected_by_seen"):
        op.execute(f"DROP FUNCTION {function}()")


def _sources() -> None:
    op.execute(f"""
    CREATE TABLE sources (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id),
        id uuid NOT NULL,
        kind text NOT NULL CHECK (kind IN ('document', 'conversation', 'task', 'code_change', 'url', 'manual')),
        title text NOT NULL CHECK (title <> ''),
        uri text,
        author text,
        source_date timestamptz,
        metadata jsonb NOT NULL DEFAULT '{{}}' CHECK (jsonb_typeof(metadata) = 'object'),
        {_READERS},
        created_by uuid,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        version bigint NOT NULL DEFAULT 1,
        PRIMARY KEY (tenant_id, id),
        CHECK (visibility <> 'private' OR user_id IS NOT NULL)
    )""")
    op.execute("CREATE INDEX sources_by_time ON sources (tenant_id, created_at, id)")
    enable_tenancy("sources", seen=VISIBLE_OR_STEWARD, worker_grants="SELECT")
    # Passages, their vectors and evidence carry the readers of their source, so that a search needs no look-up.
    op.execute(f"""
    CREATE TABLE passages (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        source_id uuid NOT NULL,
        ordinal int NOT NULL CHECK (ordinal >= 0),
        text text NOT NULL CHECK (text <> ''),
        locator jsonb NOT NULL DEFAULT '{{}}' CHECK (jsonb_typeof(locator) = 'object'),
        {_READERS},
        search tsvector NOT NULL,
        embedding_model text,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (tenant_id, id),
        FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute("CREATE UNIQUE INDEX passages_in_order ON passages (tenant_id, source_id, ordinal)")
    op.execute("CREATE INDEX passages_without_vector ON passages (tenant_id, id) WHERE embedding_model IS NULL")
    enable_tenancy("passages", seen=VISIBLE_OR_STEWARD, owner=SAME_TENANT, worker_grants="SELECT, UPDATE")
    op.execute(f"""
    CREATE TABLE passage_embeddings (
        tenant_id uuid NOT NULL,
        passage_id uuid NOT NULL,
        source_id uuid NOT NULL,
        model text NOT NULL,
        dimension int NOT NULL CHECK (dimension = vector_dims(embedding)),
        embedding vector NOT NULL,
        {_READERS},
        PRIMARY KEY (tenant_id, passage_id, model),
        FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute("ALTER TABLE passage_embeddings ALTER COLUMN embedding SET STORAGE PLAIN")
    op.execute("CREATE INDEX passage_embeddings_by_source ON passage_embeddings (tenant_id, source_id)")
    enable_tenancy("passage_embeddings", seen=VISIBLE_OR_STEWARD, owner=SAME_TENANT)


def _evidence() -> None:
    """Make the evidence. What was withdrawn outlives its source, so only living evidence has a foreign key to it."""
    op.execute(f"""
    CREATE TABLE evidence (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        memory_id uuid NOT NULL,
        source_id uuid NOT NULL,
        passage_id uuid,
        support text NOT NULL CHECK (support IN ('states', 'supports', 'contradicts', 'mentions')),
        confidence double precision NOT NULL DEFAULT 1 CHECK (confidence BETWEEN 0 AND 1),
        quote_start int,
        quote_end int,
        {_ACTOR},
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        withdrawn_at timestamptz,
        withdrawn_because text CHECK (withdrawn_because IN ('source_deleted', 'withdrawn')),
        living_source_id uuid GENERATED ALWAYS AS (CASE WHEN withdrawn_at IS NULL THEN source_id END) STORED,
        {_READERS},
        PRIMARY KEY (tenant_id, id),
        CHECK ((withdrawn_at IS NULL) = (withdrawn_because IS NULL)),
        CHECK ((quote_start IS NULL) = (quote_end IS NULL)),
        CHECK (quote_start IS NULL OR (quote_start >= 0 AND quote_start < quote_end AND passage_id IS NOT NULL)),
        FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, living_source_id) REFERENCES sources (tenant_id, id),
        FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE SET NULL (passage_id)
    )""")
    op.execute(
        "CREATE UNIQUE INDEX evidence_once ON evidence "
        "(tenant_id, memory_id, source_id, passage_id, support, quote_start, quote_end) NULLS NOT DISTINCT "
        "WHERE withdrawn_at IS NULL"
    )
    op.execute("CREATE INDEX evidence_by_source ON evidence (tenant_id, source_id, memory_id)")
    op.execute("CREATE INDEX evidence_by_passage ON evidence (tenant_id, passage_id) WHERE passage_id IS NOT NULL")
    enable_tenancy(
        "evidence",
        seen=f"{VISIBLE_OR_STEWARD} AND {seen_one('memories', 'evidence', 'memory_id')}",
        owner=SAME_TENANT,
        worker_grants="SELECT",
    )


def _sharing() -> None:
    """Give passages and evidence the readers of their source, and refuse a source that the writer may not read.

    A foreign key alone would tell that it exists: it passes row-level security by.
    """
    op.execute("""
    CREATE FUNCTION passage_readers() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'UPDATE' THEN
            IF NEW.source_id = OLD.source_id THEN
                RETURN NEW;
            END IF;
        END IF;
        SELECT s.visibility, s.user_id, s.reader_users, s.reader_groups
        INTO NEW.visibility, NEW.user_id, NEW.reader_users, NEW.reader_groups
        FROM sources AS s WHERE s.tenant_id = NEW.tenant_id AND s.id = NEW.source_id;
        IF NOT FOUND THEN
            RAISE foreign_key_violation USING MESSAGE = 'there is no such source';
        END IF;
        RETURN NEW;
    END $$""")
    op.execute("""
    CREATE FUNCTION support_readers() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'UPDATE' THEN
            IF NEW.passage_id IS NULL THEN
                NEW.quote_start := NULL;  -- its words go with the passage
                NEW.quote_end := NULL;
            END IF;
            IF NEW.source_id = OLD.source_id AND (NEW.passage_id IS NULL OR NEW.passage_id = OLD.passage_id)
               AND (NEW.withdrawn_at IS NOT NULL OR OLD.withdrawn_at IS NULL) THEN
                RETURN NEW;  -- it is withdrawn, or its passage has gone
            END IF;
        END IF;
        IF NEW.withdrawn_at IS NOT NULL THEN
            -- It comes back from an export, with the readers that it had.
            IF NEW.passage_id IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM passages AS p WHERE p.tenant_id = NEW.tenant_id AND p.id = NEW.passage_id) THEN
                RAISE foreign_key_violation USING MESSAGE = 'there is no such source';
            END IF;
            RETURN NEW;
        END IF;
        SELECT s.visibility, s.user_id, s.reader_users, s.reader_groups
        INTO NEW.visibility, NEW.user_id, NEW.reader_users, NEW.reader_groups
        FROM sources AS s
        WHERE s.tenant_id = NEW.tenant_id AND s.id = NEW.source_id
          AND (NEW.passage_id IS NULL OR EXISTS (
              SELECT 1 FROM passages AS p
              WHERE p.tenant_id = s.tenant_id AND p.id = NEW.passage_id AND p.source_id = s.id));
        IF NOT FOUND THEN
            RAISE foreign_key_violation USING MESSAGE = 'there is no such source';
        END IF;
        RETURN NEW;
    END $$""")
    for table, function, columns in (
        ("passages", "passage_readers", "source_id"),
        ("passage_embeddings", "passage_readers", "source_id"),
        ("evidence", "support_readers", "source_id, passage_id, withdrawn_at"),
    ):
        op.execute(f"ALTER FUNCTION {function}() OWNER TO memory_os_owner")
        op.execute(
            f"CREATE TRIGGER {function} BEFORE INSERT OR UPDATE OF {columns} ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {function}()"
        )
    # After the row, since passages and their vectors may be stored by one statement; "A" comes before the key's own.
    op.execute("""
    CREATE FUNCTION passage_seen() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM 1 FROM passages AS p
        WHERE p.tenant_id = NEW.tenant_id AND p.id = NEW.passage_id AND p.source_id = NEW.source_id;
        IF NOT FOUND THEN
            RAISE foreign_key_violation USING MESSAGE = 'there is no such passage';
        END IF;
        RETURN NULL;
    END $$""")
    op.execute("ALTER FUNCTION passage_seen() OWNER TO memory_os_owner")
    op.execute(
        'CREATE TRIGGER "A_passage_seen" AFTER INSERT OR UPDATE OF passage_id, source_id ON passage_embeddings '
        "FOR EACH ROW EXECUTE FUNCTION passage_seen()"
    )
    for table in ("passages", "passage_embeddings", "evidence"):
        op.execute(
            f"CREATE TRIGGER share_readers_with_{table} "
            "AFTER UPDATE OF visibility, user_id, reader_users, reader_groups ON sources "
            f"FOR EACH ROW EXECUTE FUNCTION share_readers('{table}', 'source_id')"
        )


def _links_to_sources() -> None:
    _link_layers((*_LAYERS, "source"))
    op.execute(
        "ALTER TABLE entity_links ADD COLUMN target_source_id uuid "
        "GENERATED ALWAYS AS (CASE WHEN layer = 'source' THEN target_id END) STORED, "
        "ADD CONSTRAINT entity_links_source FOREIGN KEY (tenant_id, target_source_id) "
        "REFERENCES sources (tenant_id, id) ON DELETE CASCADE"
    )
    _link_policy(
        f" AND (entity_links.target_source_id IS NULL OR {seen_one('sources', 'entity_links', 'target_source_id')})"
    )


def _link_layers(layers: tuple[str, ...]) -> None:
    words = ", ".join(f"'{layer}'" for layer in layers)
    op.execute("ALTER TABLE entity_links DROP CONSTRAINT entity_links_layer_check")
    op.execute(f"ALTER TABLE entity_links ADD CONSTRAINT entity_links_layer_check CHECK (layer IN ({words}))")


def _link_policy(more: str) -> None:
    ends = {
        "target_entity_id": "entities",
        "target_memory_id": "memories",
        "target_observation_id": "observations",
        "target_procedure_id": "procedures",
        "target_outcome_id": "outcomes",
    }
    parts = [SAME_TENANT, seen_one("entities", "entity_links", "entity_id")]
    parts += [
        f"(entity_links.{column} IS NULL OR {seen_one(table, 'entity_links', column)})"
        for column, table in ends.items()
    ]
    seen = " AND ".join(parts) + more
    op.execute(f"ALTER POLICY entity_links_app ON entity_links USING ({seen}) WITH CHECK ({seen})")


def _corrections() -> None:
    op.execute("""
    CREATE TABLE corrections (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        memory_id uuid NOT NULL,
        kind text NOT NULL CHECK (kind IN ('replace_text', 'wrong_label', 'wrong_entity', 'wrong_date', 'dispute',
                                           'retract')),
        proposal jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(proposal) = 'object'),
        reason text NOT NULL CHECK (reason <> ''),
        source_id uuid,
        retrieval_id uuid,
        memory_version bigint NOT NULL,
        status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'applied', 'rejected')),
        proposed_by uuid,
        proposed_role text NOT NULL,
        proposed_user text,
        request_id text,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        decided_at timestamptz,
        decided_by uuid,
        decided_role text,
        decided_user text,
        decision_reason text,
        act_id uuid,
        result_id uuid,
        PRIMARY KEY (tenant_id, id),
        CHECK ((status = 'open') = (decided_at IS NULL)),
        CHECK ((status = 'applied') = (act_id IS NOT NULL)),
        FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, source_id) REFERENCES sources (tenant_id, id) ON DELETE SET NULL (source_id),
        FOREIGN KEY (tenant_id, result_id) REFERENCES memories (tenant_id, id) ON DELETE SET NULL (result_id)
    )""")
    op.execute("CREATE INDEX corrections_by_memory ON corrections (tenant_id, memory_id, created_at)")
    op.execute("CREATE INDEX corrections_by_result ON corrections (tenant_id, result_id) WHERE result_id IS NOT NULL")
    op.execute("CREATE INDEX corrections_by_source ON corrections (tenant_id, source_id) WHERE source_id IS NOT NULL")
    op.execute("CREATE INDEX corrections_by_time ON corrections (tenant_id, created_at, id)")
    enable_tenancy(
        "corrections", seen=f"{SAME_TENANT} AND {seen_one('memories', 'corrections', 'memory_id')}", worker_grants=""
    )
    # Whoever sees the memory sees what was said of it, though not each source; to name one, it has to be seen.
    op.execute("""
    CREATE FUNCTION corrected_by_seen() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        old_source uuid; old_result uuid;
    BEGIN
        IF TG_OP = 'UPDATE' THEN
            old_source := OLD.source_id;
            old_result := OLD.result_id;
        END IF;
        IF NEW.source_id IS DISTINCT FROM old_source AND NEW.source_id IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM sources AS s WHERE s.tenant_id = NEW.tenant_id AND s.id = NEW.source_id) THEN
            RAISE foreign_key_violation USING MESSAGE = 'there is no such source';
        END IF;
        IF NEW.result_id IS DISTINCT FROM old_result AND NEW.result_id IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM memories AS m WHERE m.tenant_id = NEW.tenant_id AND m.id = NEW.result_id) THEN
            RAISE foreign_key_violation USING MESSAGE = 'there is no such memory';
        END IF;
        RETURN NEW;
    END $$""")
    op.execute("ALTER FUNCTION corrected_by_seen() OWNER TO memory_os_owner")
    op.execute(
        "CREATE TRIGGER corrected_by_seen BEFORE INSERT OR UPDATE OF source_id, result_id ON corrections "
        "FOR EACH ROW EXECUTE FUNCTION corrected_by_seen()"
    )


def _entity_acts() -> None:
    """Make the acts on entities: `before` holds the rows as they were, so that an undo restores exactly these."""
    op.execute("""
    CREATE TABLE entity_acts (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        entity_id uuid NOT NULL,
        other_id uuid,
        kind text NOT NULL CHECK (kind IN ('merge', 'split', 'undo')),
        detail jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(detail) = 'object'),
        before jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(before) = 'object'),
        token_id uuid,
        role text NOT NULL,
        user_id text,
        request_id text,
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        undone_at timestamptz,
        PRIMARY KEY (tenant_id, id),
        FOREIGN KEY (tenant_id, entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute("CREATE INDEX entity_acts_by_entity ON entity_acts (tenant_id, entity_id, at, id)")
    op.execute("CREATE INDEX entity_acts_by_other ON entity_acts (tenant_id, other_id, at) WHERE other_id IS NOT NULL")
    # To put an entity back with the counts of its mentions, nobody may derive any meanwhile: the lease is locked.
    op.execute("GRANT UPDATE (lease_until) ON projection_leases TO memory_os_app")
    enable_tenancy(
        "entity_acts", seen=f"{SAME_TENANT} AND {seen_one('entities', 'entity_acts', 'entity_id')}", worker_grants=""
    )


def _erasures() -> None:
    """Make the receipts of erasures: ids and counts, and of a user's only a digest; nothing of what was erased."""
    op.execute(f"""
    CREATE TABLE erasures (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
        id uuid NOT NULL,
        subject_type text NOT NULL CHECK (subject_type IN ('memory', 'source', 'user')),
        subject text NOT NULL,
        record_ids uuid[] NOT NULL,
        places jsonb NOT NULL CHECK (jsonb_typeof(places) = 'array'),
        position bigint NOT NULL DEFAULT 0,
        {_ACTOR},
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (tenant_id, id)
    )""")
    op.execute("CREATE INDEX erasures_by_time ON erasures (tenant_id, at, id)")
    enable_tenancy(
        "erasures", seen=f"{SAME_TENANT} AND ({_ADMIN})", written=SAME_TENANT, app="SELECT, INSERT", worker_grants=""
    )
    # Answers are kept sealed, so that the records in them have to be told beside them.
    op.execute(
        "ALTER TABLE idempotency_keys ADD COLUMN record_ids uuid[] NOT NULL DEFAULT '{}', "
        "ADD COLUMN erased_at timestamptz"
    )


def _erasing() -> None:
    """Let an erasure reach every copy, and look up what goes with a row by the column of its foreign key.

    Without these, each of fifty thousand memories had all of its tenant's links read.
    """
    for granted, table in _ERASING:
        op.execute(f"GRANT {granted} ON {table} TO memory_os_app")
    op.execute("GRANT UPDATE (acting_user) ON erasures TO memory_os_app")
    for layer in (*_LAYERS, "source"):
        column = f"target_{layer}_id"
        op.execute(
            f"CREATE INDEX entity_links_to_{layer} ON entity_links (tenant_id, {column}) WHERE {column} IS NOT NULL"
        )
    op.execute("CREATE INDEX evidence_by_memory ON evidence (tenant_id, memory_id)")
    op.execute(
        "CREATE INDEX evidence_living ON evidence (tenant_id, living_source_id) WHERE living_source_id IS NOT NULL"
    )
    # A trigger for each row took a seventh of the time in which very many memories are deleted.
    op.execute("""
    CREATE FUNCTION sketches_of_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
    BEGIN
        IF TG_TABLE_NAME = 'memories' THEN
            DELETE FROM memory_sketches AS s USING old_rows AS o
            WHERE s.tenant_id = o.tenant_id AND s.scope = coalesce(o.user_id, '') AND s.memory_id = o.id;
        ELSE
            DELETE FROM memory_sketches AS s USING old_rows AS o, memories AS m
            WHERE m.tenant_id = o.tenant_id AND m.id = o.memory_id AND s.tenant_id = o.tenant_id
              AND s.scope = coalesce(m.user_id, '') AND s.memory_id = o.memory_id AND s.model = o.model;
        END IF;
        RETURN NULL;
    END $$""")
    op.execute("ALTER FUNCTION sketches_of_deleted() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION sketches_of_deleted() FROM PUBLIC")
    _sketch_triggers(_EACH_STATEMENT)


_OLD_ROWS = "REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION sketches_of_deleted()"
_VECTORS = "ON memory_embeddings FOR EACH ROW EXECUTE FUNCTION sketch_embedding()"
_EACH_ROW = (
    f"sketch_embedding AFTER INSERT OR UPDATE OR DELETE {_VECTORS}",
    "sketch_gone AFTER DELETE ON memories FOR EACH ROW EXECUTE FUNCTION sketch_memory()",
)
_EACH_STATEMENT = (
    f"sketch_embedding AFTER INSERT OR UPDATE {_VECTORS}",
    f"sketch_embedding_gone AFTER DELETE ON memory_embeddings {_OLD_ROWS}",
    f"sketch_gone AFTER DELETE ON memories {_OLD_ROWS}",
)
"""Triggers by which sketches follow vectors and memories: as they were, and as they are from now on."""


def _sketch_triggers(triggers: tuple[str, ...]) -> None:
    op.execute("DROP TRIGGER sketch_embedding ON memory_embeddings")
    op.execute("DROP TRIGGER IF EXISTS sketch_embedding_gone ON memory_embeddings")
    op.execute("DROP TRIGGER sketch_gone ON memories")
    for trigger in triggers:
        op.execute(f"CREATE TRIGGER {trigger}")


def _covering() -> None:
    """Make the rule of `Audience.covers` for SQL: everybody who may read the second record may read the first."""
    op.execute("""
    CREATE FUNCTION memory_os_covers(
        visibility text, user_id text, users text[], groups text[],
        of_visibility text, of_user_id text, of_users text[], of_groups text[]
    ) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN visibility = 'tenant' OR (
        of_visibility <> 'tenant'
        AND array_remove(ARRAY[of_user_id] || CASE WHEN of_visibility = 'restricted' THEN of_users ELSE '{}' END, NULL)
            <@ (ARRAY[user_id] || CASE WHEN visibility = 'restricted' THEN users ELSE '{}' END)
        AND CASE WHEN of_visibility = 'restricted' THEN of_groups ELSE '{}' END
            <@ CASE WHEN visibility = 'restricted' THEN groups ELSE '{}' END
    )""")
