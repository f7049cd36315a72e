"""Acts in the order of time: what became of memories since a moment is read from there on.

Who may see one is looked up by the key of its memory: an EXISTS is planned as a hash of all visible memories, whatever
the limit of the query.
"""

from __future__ import annotations

from alembic import op
from rls import SAME_TENANT, seen_one

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_BY_KEY = f"{SAME_TENANT} AND {seen_one('memories', 'memory_acts', 'memory_id')}"
_BEFORE = (
    f"({SAME_TENANT}) AND (EXISTS (SELECT 1 FROM memories AS m "  # noqa: S608 - our own names
    "WHERE m.tenant_id = memory_acts.tenant_id AND m.id = memory_acts.memory_id))"
)


def upgrade() -> None:
    """Make the index, and let the policy look up by key."""
    op.execute("CREATE INDEX memory_acts_by_time ON memory_acts (tenant_id, at, id)")
    op.execute(f"ALTER POLICY memory_acts_app ON memory_acts USING ({_BY_KEY}) WITH CHECK ({_BY_KEY})")


def downgrade() -> None:
    """Put back what was there before."""
    op.execute(f"ALTER POLICY memory_acts_app ON memory_acts USING ({_BEFORE}) WITH CHECK ({_BEFORE})")
    op.execute("DROP INDEX memory_acts_by_time")
