"""Token vectors of records that were ranked anew, kept for the next time."""

from __future__ import annotations

from alembic import op
from rls import SAME_TENANT, VISIBLE_OR_STEWARD, enable_tenancy

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_RECORDS = {"memories": "memory_id", "passages": "passage_id"}
"""Tables whose texts are ranked by their tokens, and the column that names a row of each."""


def upgrade() -> None:
    """Make the table. Its rows have the readers of their record, and go with its text."""
    op.execute("""
    CREATE TABLE token_vectors (
        tenant_id uuid NOT NULL,
        record_id uuid NOT NULL,
        memory_id uuid,
        passage_id uuid,
        model text NOT NULL,
        digest bytea NOT NULL CHECK (octet_length(digest) = 32),
        vectors bytea NOT NULL CHECK (octet_length(vectors) > 0),
        used_at timestamptz NOT NULL DEFAULT now(),
        visibility text NOT NULL CHECK (visibility IN ('tenant', 'private', 'restricted')),
        user_id text,
        reader_users text[] NOT NULL DEFAULT '{}',
        reader_groups text[] NOT NULL DEFAULT '{}',
        PRIMARY KEY (tenant_id, record_id, model),
        CHECK (num_nonnulls(memory_id, passage_id) = 1 AND record_id = coalesce(memory_id, passage_id)),
        FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, passage_id) REFERENCES passages (tenant_id, id) ON DELETE CASCADE
    )""")
    # They hardly shrink, and packing them would cost more than reading a few pages more.
    op.execute("ALTER TABLE token_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL")
    op.execute("CREATE INDEX token_vectors_by_use ON token_vectors (tenant_id, used_at)")
    for column in _RECORDS.values():
        op.execute(
            f"CREATE INDEX token_vectors_of_{column.removesuffix('_id')} ON token_vectors (tenant_id, {column}) "
            f"WHERE {column} IS NOT NULL"
        )
    enable_tenancy("token_vectors", seen=VISIBLE_OR_STEWARD, owner=SAME_TENANT, worker_grants="")
    _readers()
    _texts()


def downgrade() -> None:
    """Drop it; they are made again when they are needed."""
    op.execute("DROP TABLE token_vectors")
    for table in _RECORDS:
        for trigger in ("share_readers_with_token_vectors", "drop_token_vectors"):
            op.execute(f"DROP TRIGGER {trigger} ON {table}")
    for function in ("token_vector_readers", "drop_token_vectors"):
        op.execute(f"DROP FUNCTION {function}()")


def _readers() -> None:
    """Give each row the readers of its record, and refuse a record that the writer may not read.

    A row for another text than the record's is passed over: the text changed while its vectors were made. The record
    is held until the end of the transaction, or its text could change between the look and the commit.
    """
    op.execute("""
    CREATE FUNCTION token_vector_readers() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        content text;
    BEGIN
        IF NEW.memory_id IS NOT NULL THEN
            SELECT s.visibility, s.user_id, s.reader_users, s.reader_groups, s.text
            INTO NEW.visibility, NEW.user_id, NEW.reader_users, NEW.reader_groups, content
            FROM memories AS s WHERE s.tenant_id = NEW.tenant_id AND s.id = NEW.memory_id FOR SHARE;
        ELSE
            SELECT s.visibility, s.user_id, s.reader_users, s.reader_groups, s.text
            INTO NEW.visibility, NEW.user_id, NEW.reader_users, NEW.reader_groups, content
            FROM passages AS s WHERE s.tenant_id = NEW.tenant_id AND s.id = NEW.passage_id FOR SHARE;
        END IF;
        IF NOT FOUND THEN
            RAISE foreign_key_violation USING MESSAGE = 'there is no such record';
        END IF;
        RETURN CASE WHEN sha256(convert_to(content, 'UTF8')) = NEW.digest THEN NEW END;
    END $$""")
    op.execute("ALTER FUNCTION token_vector_readers() OWNER TO memory_os_owner")
    op.execute(
        "CREATE TRIGGER token_vector_readers BEFORE INSERT OR UPDATE OF memory_id, passage_id, digest ON token_vectors "
        "FOR EACH ROW EXECUTE FUNCTION token_vector_readers()"
    )
    for table, column in _RECORDS.items():
        op.execute(
            "CREATE TRIGGER share_readers_with_token_vectors "
            f"AFTER UPDATE OF visibility, user_id, reader_users, reader_groups ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION share_readers('token_vectors', '{column}')"
        )


def _texts() -> None:
    """Drop what was made of a text when the text changes, whoever changes it."""
    op.execute("""
    CREATE FUNCTION drop_token_vectors() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
    BEGIN
        DELETE FROM token_vectors AS v WHERE v.tenant_id = NEW.tenant_id AND v.record_id = NEW.id;
        RETURN NULL;
    END $$""")
    op.execute("ALTER FUNCTION drop_token_vectors() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION drop_token_vectors() FROM PUBLIC")
    for table in _RECORDS:
        op.execute(
            f"CREATE TRIGGER drop_token_vectors AFTER UPDATE OF text ON {table} FOR EACH ROW "
            "WHEN (NEW.text IS DISTINCT FROM OLD.text) EXECUTE FUNCTION drop_token_vectors()"
        )
