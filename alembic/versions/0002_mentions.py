"""What is derived from memories: mentions of entities, pairs named together, and the exact counts of both."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from rls import SAME_TENANT, VISIBLE, enable_tenancy

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KNOWN = (
    "(declared OR EXISTS (SELECT 1 FROM mentions m WHERE m.tenant_id = entities.tenant_id "
    "AND m.entity_id = entities.id))"
)
"""A derived entity is known to whoever sees a memory that names it; the sub-select runs under the reader's policies."""


def upgrade() -> None:
    """Make the derived rows, and the triggers that keep their counts."""
    # No foreign keys, which cost a third of an insert: the worker inserts under a lock on the memories' rows, and a
    # trigger takes a memory's mentions with it. Entities may go while names are still being resolved to them.
    op.execute("""
    CREATE TABLE mentions (
        tenant_id uuid NOT NULL,
        memory_id uuid NOT NULL,
        canonical_name text NOT NULL CHECK (canonical_name <> ''),
        entity_id uuid NOT NULL,
        name text NOT NULL,
        occurrences int NOT NULL CHECK (occurrences > 0),
        confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
        spans int[] NOT NULL,
        seen timestamptz NOT NULL,
        extractor text NOT NULL,
        extractor_version int NOT NULL,
        PRIMARY KEY (tenant_id, memory_id, canonical_name)
    ) WITH (autovacuum_vacuum_scale_factor = 0.05)""")
    op.execute("CREATE INDEX mentions_by_entity ON mentions (tenant_id, entity_id, confidence DESC)")
    op.execute("CREATE INDEX mentions_by_name ON mentions (tenant_id, canonical_name)")
    # A name that only a hidden memory mentions is hidden too: the sub-selects run under the reader's own policies.
    enable_tenancy(
        "mentions",
        owner=SAME_TENANT,
        narrower="EXISTS (SELECT 1 FROM memories m WHERE m.tenant_id = mentions.tenant_id "
        "AND m.id = mentions.memory_id)",
    )
    op.execute(
        f"ALTER POLICY entities_app ON entities USING (({VISIBLE}) AND {KNOWN}) WITH CHECK (({VISIBLE}) AND {KNOWN})"
    )
    op.execute("""
    CREATE TABLE entity_pairs (
        tenant_id uuid NOT NULL,
        entity_a uuid NOT NULL,
        entity_b uuid NOT NULL,
        records int NOT NULL CHECK (records > 0),
        PRIMARY KEY (tenant_id, entity_a, entity_b),
        CHECK (entity_a < entity_b)
    ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)""")
    enable_tenancy("entity_pairs", owner=SAME_TENANT)
    # When a memory was last extracted from: a row of its own, so that extracting does not rewrite the wide row.
    op.execute("""
    CREATE TABLE extractions (
        tenant_id uuid NOT NULL,
        memory_id uuid NOT NULL,
        extractor text NOT NULL,
        extractor_version int NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (tenant_id, memory_id),
        FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE
    )""")
    enable_tenancy("extractions")
    op.execute("""
    CREATE FUNCTION mentions_of_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
    BEGIN
        DELETE FROM mentions AS m USING old_rows AS o WHERE m.tenant_id = o.tenant_id AND m.memory_id = o.id;
        RETURN NULL;
    END $$""")
    op.execute("ALTER FUNCTION mentions_of_deleted() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION mentions_of_deleted() FROM PUBLIC")
    op.execute(
        "CREATE TRIGGER mentions_of_deleted AFTER DELETE ON memories "
        "REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION mentions_of_deleted()"
    )
    # The trigger functions stand in a file of their own: they are the exactness of every weight in the graph.
    op.execute(Path(__file__).with_name("mentions_count.sql").read_text())
    op.execute("ALTER FUNCTION mentions_count() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION mentions_count() FROM PUBLIC")
    for event, referencing in (
        ("INSERT", "NEW TABLE AS new_rows"),
        ("DELETE", "OLD TABLE AS old_rows"),
        ("UPDATE", "OLD TABLE AS old_rows NEW TABLE AS new_rows"),
    ):
        op.execute(
            f"CREATE TRIGGER mentions_count_{event.lower()} AFTER {event} ON mentions "
            f"REFERENCING {referencing} FOR EACH STATEMENT EXECUTE FUNCTION mentions_count()"
        )


def downgrade() -> None:
    """Drop them; derived entities go too, since nothing would tell any more who may know of them."""
    op.execute(f"ALTER POLICY entities_app ON entities USING ({VISIBLE}) WITH CHECK ({VISIBLE})")
    op.execute("DROP TRIGGER mentions_of_deleted ON memories")
    for table in ("extractions", "entity_pairs", "mentions"):
        op.execute(f"DROP TABLE {table} CASCADE")
    for function in ("mentions_of_deleted()", "mentions_count()"):
        op.execute(f"DROP FUNCTION {function}")
    op.execute("ALTER TABLE entities NO FORCE ROW LEVEL SECURITY")
    op.execute("DELETE FROM entities WHERE NOT declared")
    op.execute("ALTER TABLE entities FORCE ROW LEVEL SECURITY")
