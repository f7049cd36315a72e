"""The canonical store: tenants, memories, entities, business records, links and edges."""

from __future__ import annotations

from alembic import op
from rls import SAME_TENANT, enable_tenancy

from memory_os.domain.names import CANONICAL_NAME_SQL

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

EMBEDDING_PARTITIONS = 16

LABELS = (
    "'Attribute','Preference','Belief','Value','Skill','Goal','Project','Commitment','Decision','Behavior','Insight',"
    "'Opportunity','Event','Reference','Resource'"
)
LAYERS = "'identity','direction','intelligence','world'"
STATUSES = "'active','completed','abandoned','expired','superseded','disputed','archived','retracted'"
EDGE_TYPES = (
    "'MOTIVATED_BY','CAUSED_BY','ENABLES','BLOCKS','REQUIRES','PART_OF','SUPPORTS','CONTRADICTS','INFLUENCES',"
    "'COMMITTED_TO','FOLLOWED_THROUGH','ADVANCES','TAGGED_WITH','ABOUT','EVOLVED_INTO','SUPERSEDES','DUPLICATES',"
    "'EXTRACTED_FROM'"
)
READERS = """
    visibility text NOT NULL DEFAULT 'tenant' CHECK (visibility IN ('tenant', 'private', 'restricted')),
    user_id text,
    reader_users text[] NOT NULL DEFAULT '{}',
    reader_groups text[] NOT NULL DEFAULT '{}',
    CHECK (visibility <> 'private' OR user_id IS NOT NULL)
"""
TIMES = """
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1
"""


def upgrade() -> None:
    """Make the tables, in the order of their foreign keys."""
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    op.execute("GRANT SELECT ON alembic_version TO memory_os_app, memory_os_worker")  # a start compares it with head
    _functions()
    _tenants()
    _memories()
    _entities()
    _records()
    _entity_links()
    _edges()
    _service_tables()


def downgrade() -> None:
    """Drop everything that the upgrade made; roles and extension stay: others may use them."""
    for table in (
        "audit_log",
        "idempotency_keys",
        "edges",
        "entity_links",
        "observations",
        "procedures",
        "outcomes",
        "entity_names",
        "entities",
        "memory_embeddings",
        "embedding_models",
        "memories",
        "tokens",
        "tenants",
    ):
        op.execute(f"DROP TABLE {table} CASCADE")
    for function in (
        "entity_names_sync()",
        "authenticate(text, bytea)",
        "memory_os_text_of(text[])",
        "memory_os_canonical_name(text)",
    ):
        op.execute(f"DROP FUNCTION IF EXISTS {function}")


def _functions() -> None:
    op.execute(
        "CREATE FUNCTION memory_os_canonical_name(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE "
        f"RETURN {CANONICAL_NAME_SQL}"
    )
    op.execute(
        # array_to_string is only STABLE because of types whose output depends on settings; text is not one of them.
        "CREATE FUNCTION memory_os_text_of(text[]) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE "
        "AS $$ SELECT array_to_string($1, ' ') $$"
    )


def _tenants() -> None:
    op.execute("""
    CREATE TABLE tenants (
        tenant_id uuid PRIMARY KEY,
        name text NOT NULL CHECK (name <> ''),
        time_zone text NOT NULL DEFAULT 'UTC',
        status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
    )""")
    enable_tenancy(
        "tenants", root=True, worker="true", owner="true", app="SELECT, INSERT, UPDATE", worker_grants="SELECT"
    )
    op.execute("""
    CREATE TABLE tokens (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
        id uuid NOT NULL,
        prefix text NOT NULL,
        secret_hash bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
        name text NOT NULL DEFAULT '',
        role text NOT NULL CHECK (role IN ('reader', 'writer', 'reviewer', 'operator', 'admin', 'root')),
        scopes text[] NOT NULL DEFAULT '{}' CHECK (scopes <@ ARRAY['act_as']),
        user_id text,
        groups text[] NOT NULL DEFAULT '{}',
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        last_used_at timestamptz,
        revoked_at timestamptz,
        PRIMARY KEY (tenant_id, id),
        UNIQUE (tenant_id, prefix),
        CHECK ((role = 'root') = (tenant_id = '00000000-0000-0000-0000-000000000000'))
    )""")
    # Looked up before a tenant is known; the prefix is random, so an index without the tenant serves it.
    op.execute("CREATE INDEX tokens_by_prefix ON tokens (prefix)")
    enable_tenancy("tokens", root=True, owner="true", worker="false", worker_grants="")
    op.execute("""
    CREATE FUNCTION authenticate(given_prefix text, given_hash bytea)
    RETURNS TABLE (tenant_id uuid, token_id uuid, role text, scopes text[], user_id text, groups text[])
    LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
    AS $$
        SELECT t.tenant_id, t.id, t.role, t.scopes, t.user_id, t.groups
        FROM public.tokens t JOIN public.tenants n ON n.tenant_id = t.tenant_id
        WHERE t.prefix = given_prefix AND t.secret_hash = given_hash AND t.revoked_at IS NULL
          AND (t.expires_at IS NULL OR t.expires_at > now()) AND n.status = 'active'
    $$""")
    op.execute("ALTER FUNCTION authenticate(text, bytea) OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION authenticate(text, bytea) FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION authenticate(text, bytea) TO memory_os_app")


def _memories() -> None:
    op.execute(f"""
    CREATE TABLE memories (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id),
        id uuid NOT NULL,
        label text NOT NULL CHECK (label IN ({LABELS})),
        layer text NOT NULL CHECK (layer IN ({LAYERS})),
        status text NOT NULL DEFAULT 'active' CHECK (status IN ({STATUSES})),
        text text NOT NULL CHECK (text <> ''),
        title text,
        confidence double precision NOT NULL DEFAULT 1 CHECK (confidence BETWEEN 0 AND 1),
        {READERS},
        subject text,
        property text,
        origin text,
        conversation_id text,
        tags text[] NOT NULL DEFAULT '{{}}',
        metadata jsonb NOT NULL DEFAULT '{{}}' CHECK (jsonb_typeof(metadata) = 'object'),
        occurred_at timestamptz,
        valid_from timestamptz,
        valid_to timestamptz,
        search tsvector NOT NULL,
        embedding_model text,
        created_by uuid,
        {TIMES},
        PRIMARY KEY (tenant_id, id),
        CHECK (valid_from IS NULL OR valid_to IS NULL OR valid_from <= valid_to)
    ) WITH (autovacuum_vacuum_scale_factor = 0.05)""")
    op.execute("CREATE INDEX memories_by_time ON memories (tenant_id, created_at, id)")
    op.execute("CREATE INDEX memories_by_user ON memories (tenant_id, user_id, created_at, id)")
    op.execute("CREATE INDEX memories_without_vector ON memories (tenant_id, id) WHERE embedding_model IS NULL")
    enable_tenancy("memories", visibility=True, worker_grants="SELECT, UPDATE")

    op.execute("""
    CREATE TABLE memory_embeddings (
        tenant_id uuid NOT NULL,
        memory_id uuid NOT NULL,
        model text NOT NULL,
        dimension int NOT NULL CHECK (dimension = vector_dims(embedding)),
        embedding vector NOT NULL,
        PRIMARY KEY (tenant_id, memory_id, model),
        FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE
    ) PARTITION BY HASH (tenant_id)""")
    enable_tenancy("memory_embeddings")
    # No vector index: inserting into HNSW costs ten times the rest of a write, and an exact scan of one tenant's rows
    # is faster below some 10,000 rows. Children carry forced row-level security too, and nobody is granted them.
    for part in range(EMBEDDING_PARTITIONS):
        child = f"memory_embeddings_{part:02d}"
        op.execute(
            f"CREATE TABLE {child} PARTITION OF memory_embeddings "
            f"FOR VALUES WITH (MODULUS {EMBEDDING_PARTITIONS}, REMAINDER {part})"
        )
        op.execute(f"ALTER TABLE {child} ALTER COLUMN embedding SET STORAGE PLAIN")
        op.execute(f"ALTER TABLE {child} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {child} FORCE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {child} OWNER TO memory_os_owner")
        op.execute(
            f"CREATE POLICY {child}_none ON {child} USING (false)"  # reached through the parent only
        )
    op.execute("""
    CREATE TABLE embedding_models (
        model text PRIMARY KEY,
        dimension int NOT NULL CHECK (dimension BETWEEN 1 AND 4096),
        current boolean NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    )""")
    op.execute("CREATE UNIQUE INDEX embedding_models_current ON embedding_models (current) WHERE current")
    op.execute("GRANT SELECT, INSERT ON embedding_models TO memory_os_app")
    op.execute("GRANT SELECT, INSERT, UPDATE ON embedding_models TO memory_os_worker")


def _entities() -> None:
    op.execute(f"""
    CREATE TABLE entities (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id),
        id uuid NOT NULL,
        declared boolean NOT NULL,
        name text NOT NULL CHECK (name <> ''),
        canonical_name text NOT NULL GENERATED ALWAYS AS (memory_os_canonical_name(name)) STORED,
        entity_type text NOT NULL CHECK (entity_type <> ''),
        aliases text[] NOT NULL DEFAULT '{{}}',
        summary text,
        payload jsonb NOT NULL DEFAULT '{{}}' CHECK (jsonb_typeof(payload) = 'object'),
        confidence double precision NOT NULL DEFAULT 1 CHECK (confidence BETWEEN 0 AND 1),
        status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'retired', 'archived')),
        {READERS},
        first_seen timestamptz,
        last_seen timestamptz,
        mention_records int NOT NULL DEFAULT 0 CHECK (mention_records >= 0),
        mention_occurrences int NOT NULL DEFAULT 0 CHECK (mention_occurrences >= 0),
        mention_confidence double precision NOT NULL DEFAULT 0,
        embedding vector,
        embedding_model text,
        search tsvector NOT NULL GENERATED ALWAYS AS (
            to_tsvector('simple', name || ' ' || memory_os_text_of(aliases) || ' ' || coalesce(summary, ''))
        ) STORED,
        created_by uuid,
        {TIMES},
        PRIMARY KEY (tenant_id, id),
        CHECK (canonical_name <> ''),
        CHECK ((embedding IS NULL) = (embedding_model IS NULL))
    ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)""")
    # One derived entity a name; declared ones may share a name (two people can), told apart by their ids.
    op.execute("CREATE UNIQUE INDEX entities_derived ON entities (tenant_id, canonical_name) WHERE NOT declared")
    op.execute("CREATE INDEX entities_by_time ON entities (tenant_id, created_at, id)")
    op.execute("CREATE INDEX entities_declared ON entities (tenant_id) WHERE declared")
    op.execute("CREATE INDEX entities_by_name ON entities (tenant_id, canonical_name)")
    op.execute("CREATE INDEX entities_aliases ON entities USING gin (aliases)")
    enable_tenancy("entities", visibility=True, owner=SAME_TENANT)

    # Array operators are not leakproof, so an alias look-up under a policy could not use the GIN index; equality can.
    op.execute("""
    CREATE TABLE entity_names (
        tenant_id uuid NOT NULL,
        canonical_name text NOT NULL CHECK (canonical_name <> ''),
        entity_id uuid NOT NULL,
        surface text NOT NULL,
        PRIMARY KEY (tenant_id, canonical_name, entity_id),
        FOREIGN KEY (tenant_id, entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute("CREATE INDEX entity_names_by_entity ON entity_names (tenant_id, entity_id)")
    enable_tenancy("entity_names")
    op.execute("""
    CREATE FUNCTION entity_names_sync() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM entity_names WHERE tenant_id = NEW.tenant_id AND entity_id = NEW.id;
        INSERT INTO entity_names (tenant_id, canonical_name, entity_id, surface)
        SELECT DISTINCT ON (c) NEW.tenant_id, c, NEW.id, s
        FROM (SELECT s, memory_os_canonical_name(s) AS c, n
              FROM unnest(NEW.name || NEW.aliases) WITH ORDINALITY AS given (s, n)) AS named
        WHERE c <> '' ORDER BY c, n;
        RETURN NULL;
    END $$""")
    op.execute(
        "CREATE TRIGGER entity_names_insert AFTER INSERT ON entities "
        "FOR EACH ROW WHEN (NEW.declared) EXECUTE FUNCTION entity_names_sync()"
    )
    op.execute(
        "CREATE TRIGGER entity_names_update AFTER UPDATE OF name, aliases, declared ON entities "
        "FOR EACH ROW WHEN (NEW.declared) EXECUTE FUNCTION entity_names_sync()"
    )


def _records() -> None:
    for table in ("observations", "procedures", "outcomes"):
        op.execute(f"""
        CREATE TABLE {table} (
            tenant_id uuid NOT NULL REFERENCES tenants (tenant_id),
            id uuid NOT NULL,
            title text NOT NULL CHECK (title <> ''),
            summary text NOT NULL DEFAULT '',
            payload jsonb NOT NULL DEFAULT '{{}}' CHECK (jsonb_typeof(payload) = 'object'),
            confidence double precision NOT NULL DEFAULT 1 CHECK (confidence BETWEEN 0 AND 1),
            status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
            {READERS},
            search tsvector NOT NULL,
            created_by uuid,
            {TIMES},
            PRIMARY KEY (tenant_id, id)
        )""")
        op.execute(f"CREATE INDEX {table}_by_time ON {table} (tenant_id, created_at, id)")
        enable_tenancy(table, visibility=True, worker_grants="SELECT")


def _entity_links() -> None:
    # The target is of one of five kinds; a generated column for each carries a real foreign key, tenant first.
    targets = {
        "entity": "entities",
        "memory": "memories",
        "observation": "observations",
        "procedure": "procedures",
        "outcome": "outcomes",
    }
    columns = "".join(
        f"target_{layer}_id uuid GENERATED ALWAYS AS (CASE WHEN layer = '{layer}' THEN target_id END) STORED,\n"
        for layer in targets
    )
    keys = "".join(
        f"FOREIGN KEY (tenant_id, target_{layer}_id) REFERENCES {table} (tenant_id, id) ON DELETE CASCADE,\n"
        for layer, table in targets.items()
    )
    layers = ", ".join(f"'{layer}'" for layer in targets)
    op.execute(f"""
    CREATE TABLE entity_links (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        entity_id uuid NOT NULL,
        layer text NOT NULL CHECK (layer IN ({layers})),
        target_id uuid NOT NULL,
        {columns}
        relationship text NOT NULL CHECK (relationship <> ''),
        confidence double precision NOT NULL DEFAULT 1 CHECK (confidence BETWEEN 0 AND 1),
        valid_from timestamptz,
        valid_to timestamptz,
        created_by uuid,
        {TIMES},
        PRIMARY KEY (tenant_id, id),
        FOREIGN KEY (tenant_id, entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
        {keys}
        CHECK (valid_from IS NULL OR valid_to IS NULL OR valid_from <= valid_to),
        CHECK (layer <> 'entity' OR target_id <> entity_id)
    )""")
    op.execute("CREATE INDEX entity_links_by_entity ON entity_links (tenant_id, entity_id, created_at, id)")
    op.execute("CREATE INDEX entity_links_by_target ON entity_links (tenant_id, target_id)")
    enable_tenancy("entity_links", worker_grants="SELECT")


def _edges() -> None:
    op.execute(f"""
    CREATE TABLE edges (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        type text NOT NULL CHECK (type IN ({EDGE_TYPES})),
        source_memory_id uuid,
        source_entity_id uuid,
        target_memory_id uuid,
        target_entity_id uuid,
        confidence double precision NOT NULL DEFAULT 0.5 CHECK (confidence BETWEEN 0 AND 1),
        co_reference_count int NOT NULL DEFAULT 0 CHECK (co_reference_count >= 0),
        created_by uuid,
        {TIMES},
        PRIMARY KEY (tenant_id, id),
        FOREIGN KEY (tenant_id, source_memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, source_entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, target_memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, target_entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
        CHECK (num_nonnulls(source_memory_id, source_entity_id) = 1),
        CHECK (num_nonnulls(target_memory_id, target_entity_id) = 1),
        CHECK (num_nonnulls(source_memory_id, target_memory_id) >= 1),
        CHECK (source_memory_id IS DISTINCT FROM target_memory_id),
        UNIQUE NULLS NOT DISTINCT
            (tenant_id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id)
    )""")
    for side in ("source_memory_id", "source_entity_id", "target_memory_id", "target_entity_id"):
        op.execute(f"CREATE INDEX edges_by_{side} ON edges (tenant_id, {side}) WHERE {side} IS NOT NULL")
    op.execute("CREATE INDEX edges_by_time ON edges (tenant_id, created_at, id)")
    enable_tenancy("edges", worker_grants="SELECT, UPDATE")


def _service_tables() -> None:
    op.execute("""
    CREATE TABLE idempotency_keys (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
        principal text NOT NULL,
        key text NOT NULL,
        request_hash bytea NOT NULL,
        status int,
        body bytea,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (tenant_id, principal, key)
    )""")
    op.execute("CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at)")
    enable_tenancy("idempotency_keys", worker_grants="SELECT, DELETE")
    op.execute("""
    CREATE TABLE audit_log (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        token_id uuid,
        role text NOT NULL,
        user_id text,
        action text NOT NULL,
        target_type text NOT NULL,
        target_id text NOT NULL,
        detail jsonb NOT NULL DEFAULT '{}',
        request_id text,
        PRIMARY KEY (tenant_id, id)
    )""")
    op.execute("CREATE INDEX audit_log_by_time ON audit_log (tenant_id, at, id)")
    enable_tenancy("audit_log", root=True, app="SELECT, INSERT", worker_grants="INSERT")
