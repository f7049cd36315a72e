"""Who may not read a record sees nothing that was made of it either: vectors, names, edges, log, audit."""

from __future__ import annotations

from alembic import op
from rls import IS_ROOT, IS_STEWARD, SAME_TENANT, USER, VISIBLE, VISIBLE_OR_STEWARD, enable_tenancy, seen_one

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_READABLE = ("memories", "observations", "procedures", "outcomes")
_KNOWN = (
    "(declared OR EXISTS (SELECT 1 FROM mentions m WHERE m.tenant_id = entities.tenant_id "
    "AND m.entity_id = entities.id))"
)
_OVERSEER = "(SELECT current_setting('memory_os.role', true)) IN ('operator', 'admin', 'steward')"
_AUDITOR = "(SELECT current_setting('memory_os.role', true)) IN ('admin', 'root', 'steward')"

_OWNED = {"memories": SAME_TENANT, "memory_embeddings": SAME_TENANT, "memory_sketches": SAME_TENANT}
"""What the owner's triggers read and write: whoever changes a row may not see all that was made of it."""


def _ends(table: str, ends: dict[str, str], needed: tuple[str, ...] = ()) -> str:
    parts = [SAME_TENANT, *(seen_one(other, table, column) for column, other in ends.items() if column in needed)]
    optional = {column: other for column, other in ends.items() if column not in needed}
    parts += [f"({table}.{column} IS NULL OR {seen_one(other, table, column)})" for column, other in optional.items()]
    return " AND ".join(parts)


_EDGE_ENDS = {
    "source_memory_id": "memories",
    "target_memory_id": "memories",
    "source_entity_id": "entities",
    "target_entity_id": "entities",
}
_LINK_ENDS = {
    "entity_id": "entities",
    "target_entity_id": "entities",
    "target_memory_id": "memories",
    "target_observation_id": "observations",
    "target_procedure_id": "procedures",
    "target_outcome_id": "outcomes",
}
_NARROWED = {
    "edges": _ends("edges", _EDGE_ENDS),
    "entity_links": _ends("entity_links", _LINK_ENDS, ("entity_id",)),
    "entity_names": f"{SAME_TENANT} AND {seen_one('entities', 'entity_names', 'entity_id')}",
    "entity_pairs": (
        f"{SAME_TENANT} AND {seen_one('entities', 'entity_pairs', 'entity_a')} "
        f"AND {seen_one('entities', 'entity_pairs', 'entity_b')}"
    ),
    "extractions": f"{SAME_TENANT} AND {seen_one('memories', 'extractions', 'memory_id')}",
    "memory_sketches": f"{SAME_TENANT} AND {seen_one('memories', 'memory_sketches', 'memory_id')}",
    "memory_embeddings": VISIBLE_OR_STEWARD,
    "retrievals": f"{SAME_TENANT} AND (user_id IS NOT DISTINCT FROM {USER} OR {_OVERSEER})",
    "retrieval_items": f"{SAME_TENANT} AND {seen_one('retrievals', 'retrieval_items', 'retrieval_id')}",
}
"""Tables whose rows the API's role saw all of a tenant; their policies as they are from now on."""

_FOLLOWING_RETRIEVALS = ("retrieval_edges", "edge_reinforcements", "retrieval_feedback")
_OLD_FOLLOWING = (
    "EXISTS (SELECT 1 FROM retrievals AS r "  # noqa: S608 - our own names
    "WHERE r.tenant_id = {table}.tenant_id AND r.id = {table}.retrieval_id "
    f"AND (r.user_id IS NOT DISTINCT FROM {USER} "
    "OR (SELECT current_setting('memory_os.role', true)) IN ('operator', 'admin')))"
)


def upgrade() -> None:
    """Narrow the policies, let vectors carry their readers, and keep what people wrote apart in the audit log."""
    _readers_of_vectors()
    _stewards(VISIBLE_OR_STEWARD)
    for table, seen in _NARROWED.items():
        _alter(table, seen)
    for table in _FOLLOWING_RETRIEVALS:
        _alter(table, f"{SAME_TENANT} AND {seen_one('retrievals', table, 'retrieval_id')}")
    for table, seen in _OWNED.items():
        op.execute(f"CREATE POLICY {table}_owner ON {table} TO memory_os_owner USING ({seen}) WITH CHECK ({seen})")
    for function in ("sketch_embedding()", "sketch_memory()"):
        op.execute(f"ALTER FUNCTION {function} SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp")
    op.execute(
        f"ALTER POLICY audit_log_app ON audit_log USING (({SAME_TENANT} OR {IS_ROOT}) AND {_AUDITOR}) "
        f"WITH CHECK (({SAME_TENANT}) OR {IS_ROOT})"
    )
    _audit_contents()
    _looking_first()


def downgrade() -> None:
    """Widen the policies again; what people wrote stays in the audit log."""
    op.execute("DROP FUNCTION vector_of_seen() CASCADE")
    op.execute("DROP FUNCTION superseded_by_seen() CASCADE")
    op.execute("ALTER TABLE audit_log NO FORCE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE audit_contents NO FORCE ROW LEVEL SECURITY")
    op.execute(
        "UPDATE audit_log AS a SET detail = a.detail || c.content FROM audit_contents AS c "
        "WHERE c.tenant_id = a.tenant_id AND c.audit_id = a.id"
    )
    op.execute("DROP TABLE audit_contents")
    op.execute("ALTER TABLE audit_log FORCE ROW LEVEL SECURITY")
    op.execute(
        f"ALTER POLICY audit_log_app ON audit_log USING (({SAME_TENANT}) OR {IS_ROOT}) "
        f"WITH CHECK (({SAME_TENANT}) OR {IS_ROOT})"
    )
    for function in ("sketch_embedding()", "sketch_memory()"):
        op.execute(f"ALTER FUNCTION {function} SECURITY INVOKER RESET search_path")
    for table in _OWNED:
        op.execute(f"DROP POLICY {table}_owner ON {table}")
    for table in _FOLLOWING_RETRIEVALS:
        _alter(table, f"({SAME_TENANT}) AND ({_OLD_FOLLOWING.format(table=table)})")
    for table in _NARROWED:
        _alter(table, SAME_TENANT)
    _stewards(VISIBLE)
    op.execute("DROP FUNCTION share_readers() CASCADE")
    for column in ("visibility", "user_id", "reader_users", "reader_groups"):
        op.execute(f"ALTER TABLE memory_embeddings DROP COLUMN {column}")


def _alter(table: str, seen: str) -> None:
    op.execute(f"ALTER POLICY {table}_app ON {table} USING ({seen}) WITH CHECK ({seen})")


def _stewards(visible: str) -> None:
    """Let the service itself see every record of the tenant that it has entered, or not."""
    for table in _READABLE:
        _alter(table, visible)
    known = _KNOWN if visible == VISIBLE else f"({_KNOWN} OR {IS_STEWARD})"
    _alter("entities", f"({visible}) AND {known}")


def _readers_of_vectors() -> None:
    """Let each vector carry the readers of its record: to look each one up would double the time of a search."""
    op.execute("ALTER TABLE memory_embeddings NO FORCE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE memories NO FORCE ROW LEVEL SECURITY")
    op.execute(
        "ALTER TABLE memory_embeddings ADD COLUMN visibility text, ADD COLUMN user_id text, "
        "ADD COLUMN reader_users text[], ADD COLUMN reader_groups text[]"
    )
    op.execute(
        "UPDATE memory_embeddings AS e SET visibility = m.visibility, user_id = m.user_id, "
        "reader_users = m.reader_users, reader_groups = m.reader_groups "
        "FROM memories AS m WHERE m.tenant_id = e.tenant_id AND m.id = e.memory_id"
    )
    op.execute("ALTER TABLE memory_embeddings ALTER COLUMN visibility SET NOT NULL")
    op.execute("ALTER TABLE memories FORCE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE memory_embeddings FORCE ROW LEVEL SECURITY")
    # What was made of a record has the record's readers, whoever changes these. The arguments are the table and the
    # column by which it names the record.
    op.execute("""
    CREATE FUNCTION share_readers() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
    BEGIN
        EXECUTE format(
            'UPDATE %I SET visibility = $1, user_id = $2, reader_users = $3, reader_groups = $4 '
            'WHERE tenant_id = $5 AND %I = $6', TG_ARGV[0], TG_ARGV[1])
        USING NEW.visibility, NEW.user_id, NEW.reader_users, NEW.reader_groups, NEW.tenant_id, NEW.id;
        RETURN NULL;
    END $$""")
    op.execute("ALTER FUNCTION share_readers() OWNER TO memory_os_owner")
    op.execute("REVOKE ALL ON FUNCTION share_readers() FROM PUBLIC")
    op.execute(
        "CREATE TRIGGER share_readers AFTER UPDATE OF visibility, user_id, reader_users, reader_groups ON memories "
        "FOR EACH ROW EXECUTE FUNCTION share_readers('memory_embeddings', 'memory_id')"
    )


def _audit_contents() -> None:
    """Keep what people wrote apart from who did what and when: it has readers of its own, and can be erased."""
    op.execute("""
    CREATE TABLE audit_contents (
        tenant_id uuid NOT NULL,
        audit_id uuid NOT NULL,
        target_type text NOT NULL,
        target_id text NOT NULL,
        content jsonb NOT NULL CHECK (jsonb_typeof(content) = 'object'),
        visibility text NOT NULL CHECK (visibility IN ('tenant', 'private', 'restricted')),
        user_id text,
        reader_users text[] NOT NULL DEFAULT '{}',
        reader_groups text[] NOT NULL DEFAULT '{}',
        PRIMARY KEY (tenant_id, audit_id),
        FOREIGN KEY (tenant_id, audit_id) REFERENCES audit_log (tenant_id, id) ON DELETE CASCADE
    )""")
    op.execute("CREATE INDEX audit_contents_by_target ON audit_contents (tenant_id, target_id)")
    enable_tenancy(
        "audit_contents",
        seen=f"{VISIBLE_OR_STEWARD} AND {_AUDITOR}",
        written=SAME_TENANT,
        app="SELECT, INSERT, DELETE",
        worker_grants="",
    )
    # What was written before has no readers on record: nobody but the service itself sees it.
    op.execute("ALTER TABLE audit_log NO FORCE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE audit_contents NO FORCE ROW LEVEL SECURITY")
    op.execute(
        "INSERT INTO audit_contents (tenant_id, audit_id, target_type, target_id, content, visibility) "
        "SELECT tenant_id, id, target_type, target_id, detail, 'restricted' FROM audit_log "
        "WHERE target_type IN ('memory', 'entity', 'entity_link', 'observation', 'procedure', 'outcome') "
        "AND detail <> '{}'"
    )
    op.execute(
        "UPDATE audit_log AS a SET detail = '{}' FROM audit_contents AS c "
        "WHERE c.tenant_id = a.tenant_id AND c.audit_id = a.id"
    )
    op.execute("ALTER TABLE audit_contents FORCE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE audit_log FORCE ROW LEVEL SECURITY")


def _looking_first() -> None:
    """Refuse to point at a memory that the writer may not read, as at one that is not there.

    A foreign key alone would tell that it exists: it passes row-level security by. The check comes after the row and
    not before it, since a memory and what is made of it are stored by one statement; and among triggers after a row
    the names decide, so that "A" comes before the key's own "RI_ConstraintTrigger".
    """
    for function, table, condition in (
        ("vector_of_seen", "memory_embeddings", "s.id = NEW.memory_id"),
        ("superseded_by_seen", "memories", "s.id = NEW.superseded_by"),
    ):
        op.execute(f"""
        CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM 1 FROM memories AS s WHERE s.tenant_id = NEW.tenant_id AND {condition};
            IF NOT FOUND THEN
                RAISE foreign_key_violation USING MESSAGE = 'there is no such memory';
            END IF;
            RETURN NULL;
        END $$""")
        op.execute(f"ALTER FUNCTION {function}() OWNER TO memory_os_owner")
        column = "memory_id" if table == "memory_embeddings" else "superseded_by"
        op.execute(
            f'CREATE TRIGGER "A_{function}" AFTER INSERT OR UPDATE OF {column} ON {table} '
            f"FOR EACH ROW WHEN (NEW.{column} IS NOT NULL) EXECUTE FUNCTION {function}()"
        )
