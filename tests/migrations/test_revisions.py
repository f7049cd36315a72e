"""The revisions: one line of them, each up and down on a real Postgres, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DBAPIError

from memory_os.errors import StartupError
from memory_os.storage.migrate import alembic_config, downgrade, upgrade
from memory_os.storage.revision import SCHEMA_REVISION

Snapshot = dict[str, list[str]]

OBJECTS = {
    "tables": (
        "SELECT c.relname || ' ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || "
        "' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '') FROM pg_class c JOIN pg_attribute a "
        "ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
        "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S')"
    ),
    "rights": "SELECT relname || ' ' || relowner::regrole || ' ' || coalesce(relacl::text, '') FROM pg_class c",
    "indexes": "SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid",
    "constraints": (
        "SELECT k.conrelid::regclass || ' ' || pg_get_constraintdef(k.oid) FROM pg_constraint k "
        "JOIN pg_class c ON c.oid = k.conrelid"
    ),
    "policies": (
        "SELECT p.polname || ' ' || coalesce(pg_get_expr(p.polqual, p.polrelid), '') || ' ' || "
        "coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '') FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid"
    ),
    "triggers": (
        "SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
        "WHERE NOT t.tgisinternal"
    ),
    "functions": (
        "SELECT pg_get_functiondef(c.oid) || ' ' || coalesce(c.proacl::text, '') || ' ' || c.proowner::regrole "
        "FROM pg_proc c WHERE NOT EXISTS (SELECT 1 FROM pg_depend x WHERE x.objid = c.oid AND x.deptype = 'e')"
    ),
}
"""What is in the schema `public`, as text that two databases can be compared by."""


def _revisions() -> list[str]:
    """All revisions, the first one first."""
    script = ScriptDirectory.from_config(alembic_config())
    return [revision.revision for revision in script.walk_revisions()][::-1]


def _snapshot(url: str) -> Snapshot:
    """Everything in the schema `public` but what extensions own, and Alembic's own table."""
    found = {}
    with psycopg.connect(url) as connection:
        for kind, query in OBJECTS.items():
            namespace = "c.pronamespace" if kind == "functions" else "c.relnamespace"
            joined = "AND" if "WHERE" in query else "WHERE"
            rows = connection.execute(f"{query} {joined} {namespace} = 'public'::regnamespace").fetchall()
            found[kind] = sorted(row[0] for row in rows if "alembic_version" not in row[0])
    return found


def test_there_is_one_line_of_revisions_and_the_code_knows_its_end() -> None:
    script = ScriptDirectory.from_config(alembic_config())
    assert script.get_heads() == [SCHEMA_REVISION]
    assert script.get_bases() == [_revisions()[0]]
    for revision in _revisions():
        module = script.get_revision(revision)
        assert module is not None
        assert module.doc.strip().endswith(".")


def test_each_revision_goes_up_and_down_and_up_to_the_same(empty_database: str) -> None:
    revisions = _revisions()
    states: list[Snapshot] = []
    upgrade(empty_database, revisions[0])
    downgrade(empty_database, "base")  # roles and grants on the schema are there from now on
    bare = _snapshot(empty_database)
    assert {kind for kind, objects in bare.items() if objects} == set()
    for revision in revisions:
        upgrade(empty_database, revision)
        states.append(_snapshot(empty_database))
        downgrade(empty_database, "-1")
        assert _snapshot(empty_database) == (states[-2] if len(states) > 1 else bare), f"{revision} leaves something"
        upgrade(empty_database, revision)
        assert _snapshot(empty_database) == states[-1], f"{revision} comes back differently"
    upgrade(empty_database)  # a second time changes nothing
    assert _snapshot(empty_database) == states[-1]
    downgrade(empty_database, "base")
    assert _snapshot(empty_database) == bare
    upgrade(empty_database)
    assert _snapshot(empty_database) == states[-1]


def test_a_failing_revision_leaves_the_schema_as_it_was(empty_database: str) -> None:
    upgrade(empty_database)
    after = {column.split()[0] for column in _snapshot(empty_database)["tables"]}
    downgrade(empty_database, "-1")
    # A table that the last revision makes is there already.
    name = max(after - {column.split()[0] for column in _snapshot(empty_database)["tables"]})
    with psycopg.connect(empty_database) as connection:
        connection.execute(f"CREATE TABLE {name} (mine int)")
    before = _snapshot(empty_database)
    with pytest.raises(DBAPIError, match=name):
        upgrade(empty_database)
    assert _snapshot(empty_database) == before


def test_revisions_travel_inside_the_package() -> None:
    assert (Path(alembic_config().get_main_option("script_location") or "") / "rls.py").is_file()


def test_an_old_server_is_refused(empty_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_os.storage.migrate.LEAST_SERVER_VERSION", 990000)
    with pytest.raises(StartupError, match="is too old: Memory OS needs Postgres"):
        upgrade(empty_database)
