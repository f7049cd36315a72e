"""Vectors of large tenants in an index beside the exact scan; titles are embedded with their texts."""

from __future__ import annotations

from pathlib import Path

from alembic import op
from rls import SAME_TENANT, enable_tenancy

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_VECTORS = {"memory": "memory_embeddings", "passage": "passage_embeddings"}
"""Tables of the vectors, by the kind of record."""

_SKETCHED = "embedding, dimension, model, tenant_id, memory_id, visibility, user_id, reader_users, reader_groups"

_NEAR = "near_vectors(uuid, text, vector, int)"
_FUNCTIONS = (
    *("memory_vector_changed()", "passage_vector_changed()", "vectors_gone()", "lock_vector_index()"),
    *("build_vector_index(uuid, text, int, int)", "drop_vector_index(uuid)", _NEAR),
)


def upgrade() -> None:
    """Make the index, in which nothing lies yet: a worker builds it for each large tenant."""
    op.execute("""
    CREATE TABLE vector_partitions (
        tenant_id uuid PRIMARY KEY REFERENCES tenants (tenant_id) ON DELETE CASCADE,
        model text NOT NULL,
        dimension int NOT NULL CHECK (dimension BETWEEN 1 AND 4000),
        rows bigint NOT NULL,
        marked boolean NOT NULL DEFAULT false,
        built_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )""")
    enable_tenancy("vector_partitions", owner=SAME_TENANT, app="SELECT", worker_grants="SELECT, UPDATE (rows, marked)")
    # In half precision, which takes half the space: hits are measured again with the vector itself. A partition holds
    # one tenant and one model, and nobody is granted it.
    op.execute("""
    CREATE TABLE vector_index (
        tenant_id uuid NOT NULL,
        kind text NOT NULL CHECK (kind IN ('memory', 'passage')),
        record_id uuid NOT NULL,
        source_id uuid,
        embedding halfvec NOT NULL,
        PRIMARY KEY (tenant_id, kind, record_id)
    ) PARTITION BY LIST (tenant_id)""")
    op.execute("ALTER TABLE vector_index ALTER COLUMN embedding SET STORAGE PLAIN")
    enable_tenancy("vector_index", owner=SAME_TENANT, app="SELECT", worker_grants="SELECT, INSERT")
    for table in _VECTORS.values():
        op.execute(f"ALTER TABLE {table} ADD COLUMN indexed boolean NOT NULL DEFAULT false")
        # Of a tenant without a partition this names all vectors; equal keys share their space, so that it stays small.
        op.execute(f"CREATE INDEX {table}_tail ON {table} (tenant_id, model, visibility, user_id) WHERE NOT indexed")
    _functions()
    # To mark a vector changes nothing of what its sketch was made of.
    _sketch_after(f"INSERT OR UPDATE OF {_SKETCHED}")
    _embed_titles()


def downgrade() -> None:
    """Drop the index with all its partitions: every search scans all vectors again. Those made with titles stay."""
    for function in _FUNCTIONS:
        op.execute(f"DROP FUNCTION {function} CASCADE")
    for table in _VECTORS.values():
        op.execute(f"ALTER TABLE {table} DROP COLUMN indexed")
    for table in ("vector_index", "vector_partitions"):
        op.execute(f"DROP TABLE {table} CASCADE")
    _sketch_after("INSERT OR UPDATE")


def _embed_titles() -> None:
    """Let workers embed anew what has a title: its vector was made of its text alone, and serves until then."""
    op.execute("ALTER TABLE memories NO FORCE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE memories DISABLE TRIGGER USER")  # they follow texts and readers, which stay
    op.execute("UPDATE memories SET embedding_model = NULL WHERE title IS NOT NULL AND embedding_model IS NOT NULL")
    op.execute("ALTER TABLE memories ENABLE TRIGGER USER")
    op.execute("ALTER TABLE memories FORCE ROW LEVEL SECURITY")


def _functions() -> None:
    # They stand in a file of their own: that the index holds what it should and nothing else is proved by them.
    op.execute(Path(__file__).with_name("vector_index.sql").read_text())
    for function in _FUNCTIONS:
        op.execute(f"ALTER FUNCTION {function} OWNER TO memory_os_owner")
        op.execute(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
    for function in ("build_vector_index(uuid, text, int, int)", "drop_vector_index(uuid)"):
        op.execute(f"GRANT EXECUTE ON FUNCTION {function} TO memory_os_worker")
    op.execute(f"GRANT EXECUTE ON FUNCTION {_NEAR} TO memory_os_app, memory_os_worker")
    for kind, table in _VECTORS.items():
        columns = ("visibility", "model", "tenant_id", f"{kind}_id")
        if kind == "passage":
            columns = (*columns, "source_id")
        # With its schema: a backup is restored without a search path.
        vector = "OLD.embedding OPERATOR(public.<>) NEW.embedding"
        changed = " OR ".join([vector, *(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in columns)])
        op.execute(
            f"CREATE TRIGGER vector_changed BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({changed}) "
            f"EXECUTE FUNCTION {kind}_vector_changed()"
        )
        op.execute(
            f"CREATE TRIGGER vectors_gone AFTER DELETE ON {table} REFERENCING OLD TABLE AS old_rows "
            f"FOR EACH STATEMENT EXECUTE FUNCTION vectors_gone('{kind}')"
        )


def _sketch_after(events: str) -> None:
    op.execute("DROP TRIGGER sketch_embedding ON memory_embeddings")
    op.execute(
        f"CREATE TRIGGER sketch_embedding AFTER {events} ON memory_embeddings "
        "FOR EACH ROW EXECUTE FUNCTION sketch_embedding()"
    )
