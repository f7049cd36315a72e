"""What proves the projection: tombstones, which graph is whose, and comparisons of graphs with their canonical rows."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from rls import enable_tenancy

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_AGGREGATES = {"memories": "memory", "entities": "entity", "edges": "edge", "entity_links": "entity_link"}


def upgrade() -> None:
    """Make the tables, the triggers that leave tombstones, and rebuilds that can be cancelled."""
    _tombstones()
    _states()
    _verifications()
    # A dead deletion is a matter of privacy, so it is counted apart.
    _gauges(", deletes bigint", ", count(*) FILTER (WHERE o.event_type = 'GRAPH_DELETE')")
    op.execute("ALTER TABLE graph_rebuilds DROP CONSTRAINT graph_rebuilds_status_check")
    op.execute(
        "ALTER TABLE graph_rebuilds ADD CONSTRAINT graph_rebuilds_status_check "
        "CHECK (status IN ('pending', 'running', 'done', 'failed', 'cancelled'))"
    )
    _counting("mentions_count_by_set.sql")
    # Derived entities that are mentioned as surely as declared ones: several have the name, so that nobody is meant.
    op.execute(
        "CREATE INDEX entities_homonyms ON entities (tenant_id, id) WHERE NOT declared AND mention_confidence >= 1"
    )
    _shrinking()
    # An admin may cancel a job; the API's role could only ask for one before.
    op.execute("GRANT UPDATE (status, phase, finished_at) ON graph_rebuilds TO memory_os_app")


def downgrade() -> None:
    """Drop them; cancelled rebuilds become failed ones, which the older schema knows."""
    _gauges("", "")
    _counting("mentions_count.sql")
    op.execute("REVOKE UPDATE (status, phase, finished_at) ON graph_rebuilds FROM memory_os_app")
    op.execute("ALTER TABLE graph_rebuilds DROP CONSTRAINT graph_rebuilds_status_check")
    op.execute("ALTER TABLE graph_rebuilds NO FORCE ROW LEVEL SECURITY")
    op.execute("UPDATE graph_rebuilds SET status = 'failed', error = 'cancelled' WHERE status = 'cancelled'")
    op.execute("ALTER TABLE graph_rebuilds FORCE ROW LEVEL SECURITY")
    op.execute(
        "ALTER TABLE graph_rebuilds ADD CONSTRAINT graph_rebuilds_status_check "
        "CHECK (status IN ('pending', 'running', 'done', 'failed'))"
    )
    for table in ("graph_verifications", "graph_servers", "graph_states", "graph_tombstones"):
        op.execute(f"DROP TABLE {table} CASCADE")
    op.execute("DROP FUNCTION leave_tombstones() CASCADE")
    op.execute("DROP FUNCTION lift_tombstones() CASCADE")
    op.execute("DROP INDEX entities_homonyms")
    op.execute("DROP FUNCTION shrink_outbox()")
    op.execute("DROP FUNCTION graph_gauges()")


def _counting(text: str) -> None:
    """Let counts be kept by a statement for all entities of a batch, or as before by one for each."""
    function = Path(__file__).with_name(text).read_text()
    op.execute(function.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1))


def _shrinking() -> None:
    """Make indexes of the outbox small again that a heavy load has left nearly empty.

    Their keys only grow, so that the pages of what was pruned are of no use to what comes. A plain REINDEX holds up
    writers for as long as it reads the live rows, tens of milliseconds, and gives up where it can't start at once;
    the concurrent one can't run in a function, and a worker owns no index.
    """
    op.execute("""
        CREATE FUNCTION shrink_outbox() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
        SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '200ms' AS $$
        DECLARE
            swollen regclass;
            shrunk integer := 0;
        BEGIN
            FOR swollen IN
                SELECT i.indexrelid::regclass FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
                WHERE i.indrelid = 'outbox_events'::regclass AND i.indislive
                  AND pg_relation_size(c.oid) > 16 * 1024 * 1024
                  AND pg_relation_size(c.oid) > 8 * 64 * greatest(c.reltuples, 0)  -- 64 bytes an entry at the most
            LOOP
                BEGIN
                    EXECUTE format('REINDEX INDEX %s', swollen);
                    shrunk := shrunk + 1;
                EXCEPTION WHEN lock_not_available THEN
                    RETURN shrunk;  -- busy: at the next pruning
                END;
            END LOOP;
            RETURN shrunk;
        END $$""")
    op.execute("ALTER FUNCTION shrink_outbox() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION shrink_outbox() FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION shrink_outbox() TO memory_os_worker")


_GAUGES = """
    CREATE FUNCTION outbox_gauges()
    RETURNS TABLE (tenant_id uuid, status text, events bigint, oldest_seconds double precision, last_id bigint{column})
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
    AS $$
        SELECT o.tenant_id, o.status, count(*), max(extract(epoch FROM clock_timestamp() - o.created_at)), max(o.id){value}
        FROM public.outbox_events o WHERE o.status IN ('pending', 'leased', 'dead')
        GROUP BY o.tenant_id, o.status
    $$"""  # noqa: E501 - the text is that of an older revision
"""Indented as revision 0003 has it, so that a downgrade leaves exactly that."""


def _gauges(column: str, value: str) -> None:
    op.execute("DROP FUNCTION outbox_gauges()")
    op.execute(_GAUGES.format(column=column, value=value))
    op.execute("ALTER FUNCTION outbox_gauges() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION outbox_gauges() FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION outbox_gauges() TO memory_os_app, memory_os_worker")


def _tombstones() -> None:
    # No foreign key to the tenant, which would be looked up once for each deleted row.
    op.execute("""
    CREATE TABLE graph_tombstones (
        tenant_id uuid NOT NULL,
        aggregate_type text NOT NULL CHECK (aggregate_type IN ('memory', 'entity', 'entity_link', 'edge')),
        aggregate_id uuid NOT NULL,
        version bigint NOT NULL,
        deleted_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (tenant_id, aggregate_id, aggregate_type)
    )""")
    op.execute("CREATE INDEX graph_tombstones_by_age ON graph_tombstones (deleted_at)")
    enable_tenancy(
        "graph_tombstones", worker="true", owner="true", app="SELECT", worker_grants="SELECT, UPDATE, DELETE"
    )
    # A trigger, since edges and links also go with their ends, where no statement of ours names them. Derived entities
    # leave none: they come and go with what names them, and nobody has deleted them.
    op.execute("""
    CREATE FUNCTION leave_tombstones() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
    BEGIN
        INSERT INTO graph_tombstones AS t (tenant_id, aggregate_type, aggregate_id, version)
        SELECT o.tenant_id, TG_ARGV[0], o.id, o.version + 1 FROM old_rows AS o
        WHERE TG_ARGV[0] <> 'entity' OR to_jsonb(o) -> 'declared' = 'true'
        ORDER BY o.id
        ON CONFLICT (tenant_id, aggregate_id, aggregate_type)
        DO UPDATE SET version = greatest(t.version, excluded.version), deleted_at = excluded.deleted_at;
        RETURN NULL;
    END $$""")
    op.execute("ALTER FUNCTION leave_tombstones() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION leave_tombstones() FROM PUBLIC")
    for table, aggregate in _AGGREGATES.items():
        op.execute(
            f"CREATE TRIGGER leave_tombstones AFTER DELETE ON {table} REFERENCING OLD TABLE AS old_rows "
            f"FOR EACH STATEMENT EXECUTE FUNCTION leave_tombstones('{aggregate}')"
        )
    # What has come back under its old id is not gone: a worker that can't see it must not take it for deleted.
    op.execute("""
    CREATE FUNCTION lift_tombstones() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
    BEGIN
        DELETE FROM graph_tombstones AS t USING new_rows AS n
        WHERE t.tenant_id = n.tenant_id AND t.aggregate_id = n.id AND t.aggregate_type = TG_ARGV[0];
        RETURN NULL;
    END $$""")
    op.execute("ALTER FUNCTION lift_tombstones() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION lift_tombstones() FROM PUBLIC")
    for table, aggregate in _AGGREGATES.items():
        op.execute(
            f"CREATE TRIGGER lift_tombstones AFTER INSERT ON {table} REFERENCING NEW TABLE AS new_rows "
            f"FOR EACH STATEMENT EXECUTE FUNCTION lift_tombstones('{aggregate}')"
        )
    # What was deleted before this migration and still has an event to come.
    for table, aggregate in _AGGREGATES.items():
        left = f"""
        INSERT INTO graph_tombstones (tenant_id, aggregate_type, aggregate_id, version)
        SELECT o.tenant_id, o.aggregate_type, o.aggregate_id, max(o.version) FROM outbox_events AS o
        WHERE o.aggregate_type = '{aggregate}' AND o.status IN ('pending', 'leased', 'dead', 'discarded')
          AND NOT EXISTS (SELECT 1 FROM {table} AS t WHERE t.tenant_id = o.tenant_id AND t.id = o.aggregate_id)
        GROUP BY o.tenant_id, o.aggregate_type, o.aggregate_id"""  # noqa: S608 - our own names
        op.execute(left)


def _states() -> None:
    # Which graph is the tenant's: the epoch that its fence node must hold. `next_epoch` is that of a rebuilt one that
    # is about to take its place. While `doubt` says something, readers are told not to rely on the graph.
    op.execute("""
    CREATE TABLE graph_states (
        tenant_id uuid PRIMARY KEY REFERENCES tenants (tenant_id) ON DELETE CASCADE,
        epoch text NOT NULL,
        next_epoch text,
        doubt text,
        doubted_at timestamptz,
        verified_at timestamptz,
        created_at timestamptz NOT NULL DEFAULT now(),
        CHECK ((doubt IS NULL) = (doubted_at IS NULL))
    ) WITH (fillfactor = 70)""")
    enable_tenancy("graph_states", root=True, worker="true", app="SELECT")
    # No tenant: the server holds the graphs of all.
    op.execute("""
    CREATE TABLE graph_servers (
        backend text PRIMARY KEY,
        identity text NOT NULL,
        watched_at timestamptz NOT NULL DEFAULT now()
    )""")
    op.execute("GRANT SELECT, INSERT, UPDATE ON graph_servers TO memory_os_worker")


def _verifications() -> None:
    op.execute("""
    CREATE TABLE graph_verifications (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
        id uuid NOT NULL,
        repair boolean NOT NULL DEFAULT false,
        status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'done', 'failed')),
        phase text NOT NULL DEFAULT 'waiting',
        checked bigint NOT NULL DEFAULT 0,
        total bigint NOT NULL DEFAULT 0,
        parts jsonb NOT NULL DEFAULT '{}',
        missing bigint NOT NULL DEFAULT 0,
        extra bigint NOT NULL DEFAULT 0,
        differing bigint NOT NULL DEFAULT 0,
        waiting bigint NOT NULL DEFAULT 0,
        dead bigint NOT NULL DEFAULT 0,
        repaired bigint NOT NULL DEFAULT 0,
        sample jsonb NOT NULL DEFAULT '[]',
        damage text,
        attempts int NOT NULL DEFAULT 0,
        error text,
        requested_by text NOT NULL,
        request_id text,
        created_at timestamptz NOT NULL DEFAULT now(),
        started_at timestamptz,
        heartbeat_at timestamptz,
        finished_at timestamptz,
        PRIMARY KEY (tenant_id, id)
    )""")
    op.execute(
        "CREATE UNIQUE INDEX graph_verifications_one ON graph_verifications (tenant_id) "
        "WHERE status IN ('pending', 'running')"
    )
    op.execute("CREATE INDEX graph_verifications_by_time ON graph_verifications (tenant_id, created_at, id)")
    op.execute("CREATE INDEX graph_verifications_ended ON graph_verifications (finished_at)")
    enable_tenancy("graph_verifications", root=True, worker="true", owner="true", app="SELECT, INSERT")
    # The gauges of all tenants at once, for /metrics, which belongs to no tenant: of each the newest that has ended.
    op.execute("""
    CREATE FUNCTION graph_gauges()
    RETURNS TABLE (tenant_id uuid, differences bigint, dead bigint, seconds_ago double precision, doubted boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
    AS $$
        SELECT t.tenant_id, v.missing + v.extra + v.differing - v.repaired, v.dead,
               extract(epoch FROM clock_timestamp() - v.finished_at), s.doubt IS NOT NULL
        FROM public.tenants AS t LEFT JOIN public.graph_states AS s ON s.tenant_id = t.tenant_id
        LEFT JOIN LATERAL (
            SELECT * FROM public.graph_verifications AS g
            WHERE g.tenant_id = t.tenant_id AND g.status = 'done' ORDER BY g.created_at DESC LIMIT 1
        ) AS v ON true
        WHERE s.tenant_id IS NOT NULL OR v.tenant_id IS NOT NULL
    $$""")
    op.execute("CREATE POLICY graph_states_owner ON graph_states TO memory_os_owner USING (true) WITH CHECK (false)")
    op.execute("ALTER FUNCTION graph_gauges() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION graph_gauges() FROM PUBLIC")
    op.execute("GRANT EXECUTE ON FUNCTION graph_gauges() TO memory_os_app, memory_os_worker")
