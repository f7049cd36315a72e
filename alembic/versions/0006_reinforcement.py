"""What retrievals traversed, what that reinforced and when, and what their askers say of the answers."""

from __future__ import annotations

from alembic import op
from rls import USER, enable_tenancy

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# A retrieval is its asker's, and its tenant's overseers'; which token asked for nobody is for the service to tell.
_SEEN = (
    "EXISTS (SELECT 1 FROM retrievals AS r "  # noqa: S608 - our own names
    "WHERE r.tenant_id = {table}.tenant_id AND r.id = {table}.retrieval_id "
    f"AND (r.user_id IS NOT DISTINCT FROM {USER} "
    "OR (SELECT current_setting('memory_os.role', true)) IN ('operator', 'admin')))"
)


def upgrade() -> None:
    """Add the claimed confidence of edges, and make the tables."""
    # What an edge's confidence was without any retrieval, where one has raised it: paths are chosen by it, so that
    # being found does not lead to being found.
    op.execute(
        "ALTER TABLE edges ADD COLUMN claimed_confidence double precision CHECK (claimed_confidence BETWEEN 0 AND 1)"
    )
    _traversed()
    _reinforced()
    _feedback()


def downgrade() -> None:
    """Drop them; edges keep what they have gained."""
    for table in ("retrieval_feedback", "edge_reinforcements", "retrieval_edges"):
        op.execute(f"DROP TABLE {table} CASCADE")
    op.execute("ALTER TABLE edges DROP COLUMN claimed_confidence")


def _traversed() -> None:
    """Make the typed edges that led to records of a pack. No foreign key to the edge: the log outlives it."""
    op.execute("""
    CREATE TABLE retrieval_edges (
        tenant_id uuid NOT NULL,
        retrieval_id uuid NOT NULL,
        edge_id uuid NOT NULL,
        record_id uuid NOT NULL,
        record_type text NOT NULL,
        confirmed boolean NOT NULL DEFAULT false,
        state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'counted', 'skipped')),
        reason text,
        PRIMARY KEY (tenant_id, retrieval_id, edge_id, record_id),
        CHECK ((state = 'skipped') = (reason IS NOT NULL)),
        FOREIGN KEY (tenant_id, retrieval_id) REFERENCES retrievals (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute(
        "CREATE INDEX retrieval_edges_waiting ON retrieval_edges (tenant_id, retrieval_id, edge_id) "
        "WHERE state = 'waiting'"
    )
    enable_tenancy(
        "retrieval_edges",
        worker="true",
        narrower=_SEEN.format(table="retrieval_edges"),
        app="SELECT, INSERT, UPDATE",
        worker_grants="SELECT, UPDATE",
    )


def _reinforced() -> None:
    """Make the memory of the circuit breaker: once an edge and period, by its key."""
    op.execute("""
    CREATE TABLE edge_reinforcements (
        tenant_id uuid NOT NULL,
        edge_id uuid NOT NULL,
        period text NOT NULL,
        retrieval_id uuid NOT NULL,
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (tenant_id, edge_id, period),
        FOREIGN KEY (tenant_id, edge_id) REFERENCES edges (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute("CREATE INDEX edge_reinforcements_by_age ON edge_reinforcements (tenant_id, at)")
    enable_tenancy(
        "edge_reinforcements",
        narrower=_SEEN.format(table="edge_reinforcements"),
        app="SELECT",
        worker_grants="SELECT, INSERT, DELETE",
    )


def _feedback() -> None:
    """Make the verdicts: one of each record of a pack, the last one said."""
    op.execute("""
    CREATE TABLE retrieval_feedback (
        tenant_id uuid NOT NULL,
        retrieval_id uuid NOT NULL,
        record_id uuid NOT NULL,
        verdict text NOT NULL CHECK (verdict IN ('used', 'irrelevant', 'wrong')),
        token_id uuid,
        user_id text,
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (tenant_id, retrieval_id, record_id),
        FOREIGN KEY (tenant_id, retrieval_id) REFERENCES retrievals (tenant_id, id) ON DELETE CASCADE
    )""")
    enable_tenancy(
        "retrieval_feedback",
        narrower=_SEEN.format(table="retrieval_feedback"),
        app="SELECT, INSERT, UPDATE",
        worker_grants="",
    )
