"""Cycles of consolidation: schedules, runs and their actions; what fades, what is archived, and what they propose."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from rls import SAME_TENANT, VISIBLE_OR_STEWARD, enable_tenancy, seen_one

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_CYCLES = "'nightly', 'weekly', 'monthly'"
_RULES = (
    "'merge_duplicates', 'drop_entities', 'decay_edges', 'expire_opportunities', 'mark_stale', 'extract_again', "
    "'find_patterns', 'write_profiles', 'prune_edges', 'form_schemas', 'evolve_behaviors', 'archive_retired'"
)
_READERS = """
        visibility text NOT NULL DEFAULT 'tenant' CHECK (visibility IN ('tenant', 'private', 'restricted')),
        user_id text,
        reader_users text[] NOT NULL DEFAULT '{}',
        reader_groups text[] NOT NULL DEFAULT '{}',
        CHECK (visibility <> 'private' OR user_id IS NOT NULL)"""

_EDGE_ENDS = {
    "source_memory_id": "memories",
    "source_entity_id": "entities",
    "target_memory_id": "memories",
    "target_entity_id": "entities",
}
_OVERSEERS = "(SELECT current_setting('memory_os.role', true)) IN ('reviewer', 'operator', 'admin', 'steward')"
"""Who reads runs and their actions: ids and states of records that they may not be readers of."""

_RELATIONS = ("edges", "entity_links")
_FORGETTING = ("insights_forget()", "insights_of_changed()", "insight_memory_forget(uuid, uuid, text, text)")


def upgrade() -> None:
    """Add when edges and memories were used, and make the tables."""
    _use()
    _archive()
    _schedules()
    _runs()
    _actions()
    _insights()
    _profiles()


def downgrade() -> None:
    """Drop them. Edges that were archived come back first: an older version knows no archive."""
    columns = (
        "tenant_id, id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id, confidence, "
        "co_reference_count, claimed_confidence, migrated_from, created_by, created_at, updated_at"
    )
    op.execute(
        f"INSERT INTO edges ({columns}, version) SELECT {columns}, version + 2 FROM archived_edges "  # noqa: S608
        "ON CONFLICT DO NOTHING"
    )
    for table in (
        "profiles",
        "insight_members",
        "insight_candidates",
        "cycle_actions",
        "cycle_runs",
        "cycle_schedules",
        "archived_edges",
    ):
        op.execute(f"DROP TABLE {table} CASCADE")
    for function in _FORGETTING:
        op.execute(f"DROP FUNCTION {function} CASCADE")
    for table in _RELATIONS:
        op.execute(f"DROP POLICY {table}_owner ON {table}")
    op.execute("REVOKE INSERT, DELETE ON edges FROM memory_os_worker")
    op.execute("REVOKE INSERT ON evidence FROM memory_os_worker")
    op.execute("ALTER TABLE memories DROP COLUMN used_at, DROP COLUMN stale_at")
    op.execute("ALTER TABLE edges DROP COLUMN used_at, DROP COLUMN faded_at")


def _use() -> None:
    """Add when an answer used an edge last, up to when it has faded, and when a memory was used and went stale."""
    op.execute("ALTER TABLE edges ADD COLUMN used_at timestamptz, ADD COLUMN faded_at timestamptz")
    op.execute("""
    UPDATE edges AS e SET used_at = greatest(e.created_at, (
        SELECT max(r.at) FROM edge_reinforcements AS r WHERE r.tenant_id = e.tenant_id AND r.edge_id = e.id))""")
    op.execute("ALTER TABLE edges ALTER COLUMN used_at SET DEFAULT now(), ALTER COLUMN used_at SET NOT NULL")
    op.execute("CREATE INDEX edges_by_use ON edges (tenant_id, used_at)")
    op.execute("ALTER TABLE memories ADD COLUMN used_at timestamptz, ADD COLUMN stale_at timestamptz")
    op.execute("GRANT INSERT, DELETE ON edges TO memory_os_worker")
    # What a memory that merges at night was told by is shared with the one that stays.
    op.execute("GRANT INSERT ON evidence TO memory_os_worker")


def _archive() -> None:
    """Make the archive of edges: rows as they were, gone with either end."""
    op.execute("""
    CREATE TABLE archived_edges (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        type text NOT NULL,
        source_memory_id uuid,
        source_entity_id uuid,
        target_memory_id uuid,
        target_entity_id uuid,
        confidence double precision NOT NULL,
        co_reference_count int NOT NULL,
        claimed_confidence double precision,
        migrated_from uuid,
        created_by uuid,
        created_at timestamptz NOT NULL,
        updated_at timestamptz NOT NULL,
        version bigint NOT NULL,
        used_at timestamptz NOT NULL,
        faded_at timestamptz,
        archived_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (tenant_id, id),
        FOREIGN KEY (tenant_id, source_memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, source_entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, target_memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, target_entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE
    )""")
    for side in _EDGE_ENDS:
        op.execute(
            f"CREATE INDEX archived_edges_by_{side} ON archived_edges (tenant_id, {side}) WHERE {side} IS NOT NULL"
        )
    # An archived edge has the readers of an edge: those who see both of its ends.
    ends = [
        f"(archived_edges.{column} IS NULL OR {seen_one(table, 'archived_edges', column)})"
        for column, table in _EDGE_ENDS.items()
    ]
    enable_tenancy("archived_edges", narrower=" AND ".join(ends))


def _schedules() -> None:
    """Make the schedules that a tenant has of its own; a cycle without a row runs at its usual time."""
    op.execute(f"""
    CREATE TABLE cycle_schedules (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        cycle text NOT NULL CHECK (cycle IN ({_CYCLES})),
        cron text NOT NULL,
        enabled boolean NOT NULL DEFAULT true,
        updated_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (tenant_id, id),
        UNIQUE (tenant_id, cycle),
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
    )""")
    enable_tenancy("cycle_schedules")


def _runs() -> None:
    """Make the runs: one of a period, and one at a time in a tenant."""
    op.execute(f"""
    CREATE TABLE cycle_runs (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        cycle text NOT NULL CHECK (cycle IN ({_CYCLES})),
        period text NOT NULL,
        moment timestamptz NOT NULL,
        dry_run boolean NOT NULL DEFAULT false,
        status text NOT NULL DEFAULT 'waiting'
            CHECK (status IN ('waiting', 'running', 'done', 'failed', 'undone')),
        rule text CHECK (rule IN ({_RULES})),
        cursor jsonb,
        counts jsonb NOT NULL DEFAULT '{{}}' CHECK (jsonb_typeof(counts) = 'object'),
        error text,
        attempts int NOT NULL DEFAULT 0,
        retry_at timestamptz,
        token_id uuid,
        role text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        started_at timestamptz,
        finished_at timestamptz,
        undone_at timestamptz,
        PRIMARY KEY (tenant_id, id),
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
    )""")
    op.execute(
        "CREATE UNIQUE INDEX cycle_runs_of_period ON cycle_runs (tenant_id, cycle, period) "
        "WHERE NOT dry_run AND status <> 'undone'"
    )
    op.execute("CREATE INDEX cycle_runs_by_time ON cycle_runs (tenant_id, created_at, id)")
    op.execute("CREATE INDEX cycle_runs_open ON cycle_runs (tenant_id) WHERE status IN ('waiting', 'running')")
    enable_tenancy("cycle_runs", narrower=_OVERSEERS)


def _actions() -> None:
    """Make the actions: what a run changed, or would change, with the state before and after; never a text."""
    op.execute(f"""
    CREATE TABLE cycle_actions (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        run_id uuid NOT NULL,
        number int NOT NULL,
        rule text NOT NULL CHECK (rule IN ({_RULES})),
        target_kind text NOT NULL CHECK (target_kind IN ('memory', 'entity', 'edge', 'insight', 'profile')),
        target_id uuid NOT NULL,
        other_id uuid,
        before jsonb NOT NULL DEFAULT '{{}}' CHECK (jsonb_typeof(before) = 'object'),
        after jsonb NOT NULL DEFAULT '{{}}' CHECK (jsonb_typeof(after) = 'object'),
        act_id uuid,
        undone_at timestamptz,
        PRIMARY KEY (tenant_id, id),
        UNIQUE (tenant_id, run_id, number),
        FOREIGN KEY (tenant_id, run_id) REFERENCES cycle_runs (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute("CREATE INDEX cycle_actions_by_target ON cycle_actions (tenant_id, target_id)")
    enable_tenancy("cycle_actions", narrower=_OVERSEERS)


def _insights() -> None:
    """Make what cycles propose: candidates for Insights, and what each is made of."""
    op.execute(f"""
    CREATE TABLE insight_candidates (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        run_id uuid,
        rule text NOT NULL CHECK (rule IN ({_RULES})),
        title text NOT NULL,
        text text NOT NULL,
        summary text NOT NULL CHECK (summary IN ('extractive', 'model')),
        strength double precision NOT NULL,
        status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'accepted', 'rejected')),
        memory_id uuid,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        decided_at timestamptz,
        decided_by text,
        reason text,
        {_READERS},
        PRIMARY KEY (tenant_id, id),
        CHECK ((status = 'open') = (decided_at IS NULL)),
        FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE SET NULL (memory_id),
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
    )""")
    op.execute("CREATE INDEX insight_candidates_by_time ON insight_candidates (tenant_id, created_at, id)")
    op.execute(
        "CREATE INDEX insight_candidates_as ON insight_candidates (tenant_id, memory_id) WHERE memory_id IS NOT NULL"
    )
    # Keys are checked past every policy: to point at what one may not read must be refused like pointing at nothing.
    pointed = f"memory_id IS NULL OR {seen_one('memories', 'insight_candidates', 'memory_id')}"
    written = f"({VISIBLE_OR_STEWARD}) AND ({pointed})"
    enable_tenancy("insight_candidates", seen=VISIBLE_OR_STEWARD, written=written, owner=SAME_TENANT)
    op.execute("""
    CREATE TABLE insight_members (
        tenant_id uuid NOT NULL,
        candidate_id uuid NOT NULL,
        member_id uuid NOT NULL,
        memory_id uuid,
        entity_id uuid,
        PRIMARY KEY (tenant_id, candidate_id, member_id),
        CHECK (num_nonnulls(memory_id, entity_id) = 1 AND member_id = coalesce(memory_id, entity_id)),
        FOREIGN KEY (tenant_id, candidate_id) REFERENCES insight_candidates (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, entity_id) REFERENCES entities (tenant_id, id) ON DELETE CASCADE
    )""")
    for column in ("memory_id", "entity_id"):
        op.execute(
            f"CREATE INDEX insight_members_of_{column.removesuffix('_id')} ON insight_members (tenant_id, {column}) "
            f"WHERE {column} IS NOT NULL"
        )
    seen = [seen_one("insight_candidates", "insight_members", "candidate_id")]
    for column, table in (("memory_id", "memories"), ("entity_id", "entities")):
        seen.append(f"(insight_members.{column} IS NULL OR {seen_one(table, 'insight_members', column)})")
    enable_tenancy("insight_members", narrower=" AND ".join(seen), owner=SAME_TENANT)
    _derived_words()


def _derived_words() -> None:
    """Let words that were made of records go with these, whichever way a record goes or gets other readers."""
    for table in _RELATIONS:
        policy = f"CREATE POLICY {table}_owner ON {table} TO memory_os_owner"
        op.execute(f"{policy} USING ({SAME_TENANT}) WITH CHECK ({SAME_TENANT})")
    op.execute(Path(__file__).with_name("insights.sql").read_text())
    for function in _FORGETTING:
        op.execute(f"ALTER FUNCTION {function} OWNER TO memory_os_owner")
        op.execute(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
    op.execute(
        "CREATE TRIGGER insights_forget AFTER DELETE ON insight_members REFERENCING OLD TABLE AS old_rows "
        "FOR EACH STATEMENT EXECUTE FUNCTION insights_forget()"
    )
    for table, further in (("memories", ("status", "label", "text", "title")), ("entities", ())):
        columns = (*further, "visibility", "user_id", "reader_users", "reader_groups")
        old, new = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
        op.execute(
            f"CREATE TRIGGER insights_of_changed AFTER UPDATE OF {', '.join(columns)} ON {table} "
            f"FOR EACH ROW WHEN (({old}) IS DISTINCT FROM ({new})) EXECUTE FUNCTION insights_of_changed()"
        )


def _profiles() -> None:
    """Make the versions of profiles: of the tenant, and of each of its users, by the ids of what they hold."""
    op.execute("""
    CREATE TABLE profiles (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        run_id uuid,
        visibility text NOT NULL CHECK (visibility IN ('tenant', 'private')),
        user_id text,
        reader_users text[] NOT NULL DEFAULT '{}',
        reader_groups text[] NOT NULL DEFAULT '{}',
        version int NOT NULL,
        moment timestamptz NOT NULL,
        content jsonb NOT NULL CHECK (jsonb_typeof(content) = 'object'),
        diff jsonb NOT NULL CHECK (jsonb_typeof(diff) = 'object'),
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (tenant_id, id),
        UNIQUE NULLS NOT DISTINCT (tenant_id, user_id, version),
        CHECK ((visibility = 'private') = (user_id IS NOT NULL)),
        FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id) ON DELETE CASCADE
    )""")
    enable_tenancy("profiles", seen=VISIBLE_OR_STEWARD)
