"""What keeps knowledge disciplined: exact keys, acts on memories that can be undone, and what awaits a decision."""

from __future__ import annotations

from alembic import op
from rls import enable_tenancy

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_SEEN = "EXISTS (SELECT 1 FROM memories AS m WHERE m.tenant_id = {table}.tenant_id AND m.id = {table}.{column})"


def upgrade() -> None:
    """Add columns to memories and edges, and make the tables of acts and reviews."""
    # Equal for texts that are the same but for case, white space and Unicode form, for the same readers and the same
    # subject and property. Null where a client has asked to store the text whatever is there.
    op.execute("ALTER TABLE memories ADD COLUMN exact_key bytea CHECK (octet_length(exact_key) = 16)")
    op.execute(
        "CREATE UNIQUE INDEX memories_exact ON memories (tenant_id, coalesce(user_id, ''), exact_key) "
        "WHERE status IN ('active', 'disputed') AND exact_key IS NOT NULL"
    )
    op.execute("ALTER TABLE memories ADD COLUMN superseded_by uuid")
    op.execute(
        "ALTER TABLE memories ADD CONSTRAINT memories_superseded_by FOREIGN KEY (tenant_id, superseded_by) "
        "REFERENCES memories (tenant_id, id) ON DELETE SET NULL (superseded_by)"
    )
    op.execute(
        "CREATE INDEX memories_superseding ON memories (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL"
    )
    op.execute(
        "CREATE INDEX memories_by_property ON memories (tenant_id, subject, property) "
        "WHERE subject IS NOT NULL AND property IS NOT NULL"
    )
    # Where an edge lay before its memory was superseded; it has no foreign key, so that the trace outlives the memory.
    op.execute("ALTER TABLE edges ADD COLUMN migrated_from uuid")
    _acts()
    _reviews()
    _sketches()


def downgrade() -> None:
    """Drop them; what was merged or superseded stays as it is, without the means to undo it."""
    op.execute("DROP FUNCTION sketch_embedding() CASCADE")
    op.execute("DROP FUNCTION sketch_memory() CASCADE")
    for table in ("memory_sketches", "memory_reviews", "memory_acts"):
        op.execute(f"DROP TABLE {table} CASCADE")
    op.execute("ALTER TABLE edges DROP COLUMN migrated_from")
    op.execute("DROP INDEX memories_by_property")
    op.execute("ALTER TABLE memories DROP COLUMN superseded_by")
    op.execute("ALTER TABLE memories DROP COLUMN exact_key")


def _acts() -> None:
    """Make the acts: `before` holds the rows as they were, so that an undo restores exactly these."""
    op.execute("""
    CREATE TABLE memory_acts (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        memory_id uuid NOT NULL,
        other_id uuid,
        kind text NOT NULL CHECK (kind IN ('change', 'merge', 'supersede', 'complete', 'abandon', 'expire', 'dispute',
                                           'archive', 'retract', 'restore', 'undo')),
        detail jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(detail) = 'object'),
        before jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(before) = 'object'),
        token_id uuid,
        role text NOT NULL,
        user_id text,
        request_id text,
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        undone_at timestamptz,
        PRIMARY KEY (tenant_id, id),
        FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute("CREATE INDEX memory_acts_by_memory ON memory_acts (tenant_id, memory_id, at, id)")
    op.execute("CREATE INDEX memory_acts_by_other ON memory_acts (tenant_id, other_id, at) WHERE other_id IS NOT NULL")
    enable_tenancy("memory_acts", narrower=_SEEN.format(table="memory_acts", column="memory_id"))


def _reviews() -> None:
    """Make the reviews: pairs of memories that the gate could not decide about by itself."""
    op.execute("""
    CREATE TABLE memory_reviews (
        tenant_id uuid NOT NULL,
        id uuid NOT NULL,
        memory_id uuid NOT NULL,
        other_id uuid NOT NULL,
        kind text NOT NULL CHECK (kind IN ('duplicate', 'supersession', 'contradiction')),
        similarity double precision,
        tier text NOT NULL CHECK (tier IN ('exact', 'recent', 'older')),
        rule text NOT NULL,
        guard text[] NOT NULL DEFAULT '{}',
        status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'merged', 'superseded', 'disputed', 'kept')),
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        decided_at timestamptz,
        decided_by text,
        reason text,
        PRIMARY KEY (tenant_id, id),
        CHECK ((status = 'open') = (decided_at IS NULL)),
        CHECK (memory_id <> other_id),
        FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE,
        FOREIGN KEY (tenant_id, other_id) REFERENCES memories (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute("CREATE UNIQUE INDEX memory_reviews_pair ON memory_reviews (tenant_id, memory_id, other_id)")
    op.execute("CREATE INDEX memory_reviews_other ON memory_reviews (tenant_id, other_id)")
    op.execute("CREATE INDEX memory_reviews_open ON memory_reviews (tenant_id, created_at, id) WHERE status = 'open'")
    both = " AND ".join(_SEEN.format(table="memory_reviews", column=column) for column in ("memory_id", "other_id"))
    enable_tenancy("memory_reviews", narrower=both)


def _sketches() -> None:
    """Make the sketches: the signs of each vector's components, by which the gate finds what is near in a scope.

    Reading ten thousand whole vectors takes 17 ms, and a write may not wait for that; their signs take a thirtieth of
    the space, and processes keep them. `changed` is the transaction that made one: whoever has read all that was
    committed before some transaction asks for what that one and later ones made. Only what the gate may merge with has
    a sketch. The scope is the user, or nobody.
    """
    op.execute("""
    CREATE TABLE memory_sketches (
        tenant_id uuid NOT NULL REFERENCES tenants (tenant_id),
        scope text NOT NULL,
        memory_id uuid NOT NULL,
        model text NOT NULL,
        sketch bytea NOT NULL,
        changed bigint NOT NULL DEFAULT (pg_current_xact_id()::text::bigint),
        PRIMARY KEY (tenant_id, scope, memory_id, model)
    )""")
    op.execute("CREATE INDEX memory_sketches_changed ON memory_sketches (tenant_id, scope, model, changed)")
    enable_tenancy("memory_sketches")
    op.execute("""
    CREATE FUNCTION sketch_embedding() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            DELETE FROM memory_sketches AS s USING memories AS m
            WHERE m.tenant_id = OLD.tenant_id AND m.id = OLD.memory_id AND s.tenant_id = OLD.tenant_id
              AND s.scope = coalesce(m.user_id, '') AND s.model = OLD.model AND s.memory_id = OLD.memory_id;
        ELSE
            INSERT INTO memory_sketches (tenant_id, scope, memory_id, model, sketch)
            SELECT m.tenant_id, coalesce(m.user_id, ''), m.id, NEW.model,
                   substring(bit_send(binary_quantize(NEW.embedding)) FROM 5)  -- the length goes before the bits
            FROM memories AS m
            WHERE m.tenant_id = NEW.tenant_id AND m.id = NEW.memory_id AND m.status IN ('active', 'disputed')
            ON CONFLICT (tenant_id, scope, memory_id, model)
            DO UPDATE SET sketch = excluded.sketch, changed = excluded.changed;
        END IF;
        RETURN NULL;
    END $$""")
    op.execute("""
    CREATE FUNCTION sketch_memory() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' OR NEW.status NOT IN ('active', 'disputed') THEN
            DELETE FROM memory_sketches
            WHERE tenant_id = OLD.tenant_id AND scope = coalesce(OLD.user_id, '') AND memory_id = OLD.id;
        ELSE
            INSERT INTO memory_sketches (tenant_id, scope, memory_id, model, sketch)
            SELECT e.tenant_id, coalesce(NEW.user_id, ''), e.memory_id, e.model,
                   substring(bit_send(binary_quantize(e.embedding)) FROM 5)
            FROM memory_embeddings AS e WHERE e.tenant_id = NEW.tenant_id AND e.memory_id = NEW.id
            ON CONFLICT DO NOTHING;
        END IF;
        RETURN NULL;
    END $$""")
    for function in ("sketch_embedding", "sketch_memory"):
        op.execute(f"ALTER FUNCTION {function}() OWNER TO memory_os_owner")
    op.execute(
        "CREATE TRIGGER sketch_embedding AFTER INSERT OR UPDATE OR DELETE ON memory_embeddings "
        "FOR EACH ROW EXECUTE FUNCTION sketch_embedding()"
    )
    op.execute("CREATE TRIGGER sketch_gone AFTER DELETE ON memories FOR EACH ROW EXECUTE FUNCTION sketch_memory()")
    op.execute(
        "CREATE TRIGGER sketch_status AFTER UPDATE OF status ON memories FOR EACH ROW "
        "WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION sketch_memory()"
    )
