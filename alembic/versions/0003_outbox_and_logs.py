"""The outbox with its queue indexes, the workers, the projection's leases, rebuilds, and the retrieval log."""

from __future__ import annotations

from alembic import op
from rls import enable_tenancy

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# A queue's rows change three times and then go: leave room for HOT updates, and vacuum by count rather than by share.
QUEUE_STORAGE = (
    "fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 100, "
    "autovacuum_vacuum_cost_limit = 2000, autovacuum_analyze_scale_factor = 0.05"
)


def upgrade() -> None:
    """Make the tables."""
    _outbox()
    _workers()
    _rebuilds()
    _retrievals()


def downgrade() -> None:
    """Drop them."""
    op.execute("DROP FUNCTION IF EXISTS outbox_gauges()")
    for table in (
        "retrieval_items",
        "retrievals",
        "graph_rebuilds",
        "projection_leases",
        "workers",
        "outbox_events",
    ):
        op.execute(f"DROP TABLE {table} CASCADE")


def _outbox() -> None:
    op.execute(f"""
    CREATE TABLE outbox_events (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id),
        id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
        event_type text NOT NULL CHECK (event_type IN ('GRAPH_UPSERT', 'GRAPH_DELETE')),
        aggregate_type text NOT NULL CHECK (aggregate_type IN ('memory', 'entity', 'entity_link', 'edge')),
        aggregate_id uuid NOT NULL,
        version bigint NOT NULL,
        payload jsonb NOT NULL DEFAULT '{{}}',
        status text NOT NULL DEFAULT 'pending'
            CHECK (status IN ('pending', 'leased', 'done', 'dead', 'discarded')),
        attempts int NOT NULL DEFAULT 0 CHECK (attempts BETWEEN 0 AND 5),
        available_at timestamptz NOT NULL DEFAULT now(),
        lease_token uuid,
        lease_until timestamptz,
        last_error text,
        errors jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(errors) = 'array'),
        superseded_by bigint,
        discard_reason text,
        discarded_by text,
        request_id text,
        created_at timestamptz NOT NULL DEFAULT now(),
        finished_at timestamptz,
        PRIMARY KEY (tenant_id, id),
        CHECK ((status = 'leased') = (lease_token IS NOT NULL)),
        CHECK ((status = 'leased') = (lease_until IS NOT NULL)),
        CHECK ((status IN ('done', 'dead', 'discarded')) = (finished_at IS NOT NULL)),
        CHECK ((status = 'discarded') = (discard_reason IS NOT NULL AND discarded_by IS NOT NULL))
    ) WITH ({QUEUE_STORAGE})""")
    # Exactly these: due, lease expiry, live per aggregate, dead, done for pruning.
    op.execute("CREATE INDEX outbox_due ON outbox_events (tenant_id, available_at, id) WHERE status = 'pending'")
    op.execute("CREATE INDEX outbox_lease_expiry ON outbox_events (tenant_id, lease_until) WHERE status = 'leased'")
    op.execute(
        "CREATE INDEX outbox_live_per_aggregate ON outbox_events (tenant_id, aggregate_id, aggregate_type) "
        "WHERE status IN ('pending', 'leased', 'dead')"
    )
    op.execute("CREATE INDEX outbox_dead ON outbox_events (tenant_id, finished_at, id) WHERE status = 'dead'")
    op.execute("CREATE INDEX outbox_done ON outbox_events (finished_at) WHERE status IN ('done', 'discarded')")
    enable_tenancy(
        "outbox_events", root=True, worker="true", owner="true", worker_grants="SELECT, INSERT, UPDATE, DELETE"
    )
    op.execute("""
    CREATE FUNCTION outbox_gauges()
    RETURNS TABLE (tenant_id uuid, status text, events bigint, oldest_seconds double precision, last_id bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
    AS $$
        SELECT o.tenant_id, o.status, count(*), max(extract(epoch FROM clock_timestamp() - o.created_at)), max(o.id)
        FROM public.outbox_events o WHERE o.status IN ('pending', 'leased', 'dead')
        GROUP BY o.tenant_id, o.status
    $$""")
    op.execute("ALTER FUNCTION outbox_gauges() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION outbox_gauges() FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION outbox_gauges() TO memory_os_app, memory_os_worker")


def _workers() -> None:
    # No tenant: a worker serves all of them.
    op.execute("""
    CREATE TABLE workers (
        id uuid PRIMARY KEY,
        host text NOT NULL,
        pid int NOT NULL,
        version text NOT NULL,
        state text NOT NULL CHECK (state IN ('starting', 'idle', 'working', 'paused', 'stopping', 'stopped')),
        breaker text NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'open', 'half_open')),
        breaker_reason text,
        started_at timestamptz NOT NULL DEFAULT now(),
        last_seen timestamptz NOT NULL DEFAULT now(),
        done bigint NOT NULL DEFAULT 0,
        failed bigint NOT NULL DEFAULT 0,
        stale_acks bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 70)""")
    op.execute("GRANT SELECT ON workers TO memory_os_app")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON workers TO memory_os_worker")
    # One writer a tenant graph at a time: whoever holds the row's token writes, and the graph's fence holds it too.
    op.execute("""
    CREATE TABLE projection_leases (
        tenant_id uuid PRIMARY KEY REFERENCES tenants (tenant_id) ON DELETE CASCADE,
        token uuid NOT NULL,
        worker_id uuid NOT NULL,
        lease_until timestamptz NOT NULL
    ) WITH (fillfactor = 50)""")
    enable_tenancy("projection_leases", worker="true", app="SELECT")


def _rebuilds() -> None:
    op.execute("""
    CREATE TABLE graph_rebuilds (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
        id uuid NOT NULL,
        status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'done', 'failed')),
        phase text NOT NULL DEFAULT 'waiting',
        user_id text,
        max_memories int CHECK (max_memories > 0),
        allow_partial boolean NOT NULL DEFAULT false,
        truncated boolean NOT NULL DEFAULT false,
        total bigint NOT NULL DEFAULT 0,
        processed bigint NOT NULL DEFAULT 0,
        attempts int NOT NULL DEFAULT 0,
        requested_by text NOT NULL,
        request_id text,
        error text,
        created_at timestamptz NOT NULL DEFAULT now(),
        started_at timestamptz,
        heartbeat_at timestamptz,
        finished_at timestamptz,
        PRIMARY KEY (tenant_id, id)
    )""")
    op.execute(
        "CREATE UNIQUE INDEX graph_rebuilds_one ON graph_rebuilds (tenant_id) WHERE status IN ('pending', 'running')"
    )
    enable_tenancy("graph_rebuilds", root=True, worker="true", app="SELECT, INSERT")


def _retrievals() -> None:
    op.execute("""
    CREATE TABLE retrievals (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
        id uuid NOT NULL,
        token_id uuid,
        user_id text,
        conversation_id text,
        query text NOT NULL,
        as_of timestamptz,
        arms jsonb NOT NULL,
        bounds jsonb NOT NULL,
        timings_ms jsonb NOT NULL,
        graph_state text NOT NULL,
        no_match boolean NOT NULL,
        items int NOT NULL,
        omitted int NOT NULL,
        pack_tokens int NOT NULL,
        request_id text,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (tenant_id, id)
    )""")
    op.execute("CREATE INDEX retrievals_by_time ON retrievals (tenant_id, created_at, id)")
    op.execute("CREATE INDEX retrievals_by_age ON retrievals (created_at)")
    enable_tenancy("retrievals", worker_grants="SELECT, DELETE")
    op.execute("""
    CREATE TABLE retrieval_items (
        tenant_id uuid NOT NULL,
        retrieval_id uuid NOT NULL,
        position int NOT NULL,
        record_type text NOT NULL,
        record_id uuid NOT NULL,
        in_pack boolean NOT NULL,
        reason text,
        score double precision,
        arms jsonb NOT NULL DEFAULT '{}',
        path jsonb NOT NULL DEFAULT '[]',
        PRIMARY KEY (tenant_id, retrieval_id, position),
        FOREIGN KEY (tenant_id, retrieval_id) REFERENCES retrievals (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute("CREATE INDEX retrieval_items_by_record ON retrieval_items (tenant_id, record_id)")
    enable_tenancy("retrieval_items", worker_grants="SELECT, DELETE")
