"""What the migrations make equals what the code believes: tables, columns, vocabularies, and the name function."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql
from tests.fixtures.postgres import DatabaseUrls, clone_database

from memory_os.cycles.planning import RunStatus, TargetKind
from memory_os.domain.acts import ACTS
from memory_os.domain.corrections import CORRECTION_KINDS, CorrectionStatus
from memory_os.domain.cycles.insights import CandidateStatus, SummaryKind
from memory_os.domain.cycles.rules import CYCLES, RULES
from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.labels import LABELS, LAYERS, STATUSES
from memory_os.domain.names import canonical_name
from memory_os.domain.reinforcement import STATES, Verdict
from memory_os.domain.roles import PERMISSIONS, SCOPES
from memory_os.domain.sources import SOURCE_KINDS, SUPPORTS, Withdrawal
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.entities.model import ENTITY_STATUSES, LINK_LAYERS
from memory_os.memories.comparing import Tier
from memory_os.memories.model import Visibility
from memory_os.memories.reviewing import ReviewKind, ReviewStatus
from memory_os.outbox.events import AggregateType, EventType
from memory_os.outbox.operations import Status
from memory_os.records.model import RECORD_STATUSES
from memory_os.storage import cycle_tables, text_tables, token_tables, vector_tables
from memory_os.storage.tables import metadata

Connection = psycopg.Connection[Any]

TYPES = {
    "double precision": "float8",
    "timestamp with time zone": "timestamptz",
    "boolean": "bool",
    "integer": "int4",
    "smallint": "int2",
    "real": "float4",
}

VOCABULARIES = {
    ("memories", "label"): LABELS,
    ("memories", "layer"): LAYERS,
    ("memories", "status"): STATUSES,
    ("memories", "visibility"): get_args(Visibility),
    ("entities", "status"): ENTITY_STATUSES,
    ("entities", "visibility"): get_args(Visibility),
    **{(table, "status"): RECORD_STATUSES for table in ("observations", "procedures", "outcomes")},
    **{(table, "visibility"): get_args(Visibility) for table in ("observations", "procedures", "outcomes")},
    ("entity_links", "layer"): LINK_LAYERS,
    ("edges", "type"): EDGE_TYPES,
    ("memory_acts", "kind"): ACTS,
    ("memory_reviews", "kind"): get_args(ReviewKind),
    ("memory_reviews", "status"): get_args(ReviewStatus),
    ("memory_reviews", "tier"): get_args(Tier),
    ("tokens", "role"): PERMISSIONS,
    ("tokens", "scopes"): SCOPES,
    ("outbox_events", "event_type"): get_args(EventType),
    ("outbox_events", "aggregate_type"): get_args(AggregateType),
    ("outbox_events", "status"): get_args(Status),
    ("retrieval_edges", "state"): STATES,
    ("retrieval_feedback", "verdict"): get_args(Verdict),
    ("sources", "kind"): SOURCE_KINDS,
    ("sources", "visibility"): get_args(Visibility),
    ("passages", "visibility"): get_args(Visibility),
    ("passage_embeddings", "visibility"): get_args(Visibility),
    ("token_vectors", "visibility"): get_args(Visibility),
    ("vector_index", "kind"): ("memory", "passage"),
    ("evidence", "support"): SUPPORTS,
    ("evidence", "withdrawn_because"): get_args(Withdrawal),
    ("evidence", "visibility"): get_args(Visibility),
    ("audit_contents", "visibility"): get_args(Visibility),
    ("corrections", "kind"): CORRECTION_KINDS,
    ("corrections", "status"): get_args(CorrectionStatus),
    ("entity_acts", "kind"): ("merge", "split", "undo"),
    ("erasures", "subject_type"): ("memory", "source", "user"),
    ("cycle_schedules", "cycle"): CYCLES,
    ("cycle_runs", "cycle"): CYCLES,
    ("cycle_runs", "status"): get_args(RunStatus),
    **{(table, "rule"): RULES for table in ("cycle_runs", "cycle_actions", "insight_candidates")},
    ("cycle_actions", "target_kind"): get_args(TargetKind),
    ("insight_candidates", "summary"): get_args(SummaryKind),
    ("insight_candidates", "status"): get_args(CandidateStatus),
    ("insight_candidates", "visibility"): get_args(Visibility),
    ("profiles", "visibility"): ("tenant", "private"),
}
"""The closed words of each column, as the code knows them."""

assert {
    cycle_tables.cycle_runs.name,
    text_tables.postings.name,
    token_tables.token_vectors.name,
    vector_tables.vector_index.name,
} <= metadata.tables.keys()  # a module of tables has to be loaded for them to be known


@pytest.fixture(scope="module")
def connection(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[Connection]:
    """The superuser on a migrated database."""
    for urls in clone_database(postgres_server, template_database):
        with psycopg.connect(urls.owner_url, autocommit=True) as opened:
            yield opened


def test_tables_and_columns_are_those_of_the_code(connection: Connection) -> None:
    rows = connection.execute(
        "SELECT c.relname, a.attname, t.typname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
        "AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid "
        "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace "
        "AND c.relname <> 'alembic_version'"
    ).fetchall()
    found = {(table, column): kind for table, column, kind in rows}
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call] # SQLAlchemy's
    wanted = {}
    for table in metadata.tables.values():
        for column in table.columns:
            kind = column.type.compile(dialect).lower()
            base = kind.removesuffix("[]")
            name = TYPES.get(base, base).replace("bigint", "int8")
            wanted[table.name, column.name] = f"_{name}" if kind.endswith("[]") else name
    assert found == wanted


def test_primary_keys_and_what_may_be_null_are_those_of_the_code(connection: Connection) -> None:
    rows = connection.execute(
        "SELECT c.relname, a.attname, a.attnotnull, coalesce(a.attnum = ANY (k.conkey), false) FROM pg_class c "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 LEFT JOIN pg_constraint k ON k.conrelid = c.oid "
        "AND k.contype = 'p' WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace"
    ).fetchall()
    found = {(table, column): (filled, key) for table, column, filled, key in rows}
    for table in metadata.tables.values():
        for column in table.columns:
            filled, key = found[table.name, column.name]
            assert key == column.primary_key, (table.name, column.name)
            assert filled or column.nullable, (table.name, column.name)


def test_checks_allow_the_words_of_the_domain_and_no_others(connection: Connection) -> None:
    for (table, column), words in VOCABULARIES.items():
        assert _allowed(connection, table, column) == set(words), (table, column)


def test_every_closed_column_is_compared(connection: Connection) -> None:
    rows = connection.execute(
        "SELECT DISTINCT k.conrelid::regclass::text, a.attname FROM pg_constraint k "
        "JOIN pg_class c ON c.oid = k.conrelid AND c.relnamespace = 'public'::regnamespace "
        "JOIN pg_attribute a ON a.attrelid = k.conrelid AND k.conkey = ARRAY[a.attnum] "
        "WHERE k.contype = 'c' AND pg_get_constraintdef(k.oid) ~ 'ARRAY\\['"
    ).fetchall()
    # What only the service itself writes, in words that no request or answer is held against.
    own = {("tenants", "status"), ("graph_rebuilds", "status"), ("workers", "state"), ("workers", "breaker")}
    own |= {("graph_verifications", "status"), ("graph_tombstones", "aggregate_type")}
    assert {(table, column) for table, column in rows} == VOCABULARIES.keys() | own


def _allowed(connection: Connection, table: str, column: str) -> set[str]:
    """The words in the CHECK that is about this column alone."""
    rows = connection.execute(
        "SELECT pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid "
        "AND k.conkey = ARRAY[a.attnum] WHERE k.contype = 'c' AND k.conrelid = %s::regclass AND a.attname = %s",
        (table, column),
    ).fetchall()
    lists = [text for (text,) in rows if "ARRAY[" in text]
    assert len(lists) == 1, (table, column, rows)
    return set(re.findall(r"'([^']+)'", lists[0]))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60))
def test_the_database_writes_names_as_the_domain_does(connection: Connection, name: str) -> None:
    assert connection.execute("SELECT memory_os_canonical_name(%s)", (name,)).fetchone() == (canonical_name(name),)


def test_the_name_function_serves_in_generated_columns_and_indexes(connection: Connection) -> None:
    row = connection.execute(
        "SELECT provolatile, proisstrict, proparallel, prosecdef FROM pg_proc "
        "WHERE proname = 'memory_os_canonical_name'"
    ).fetchone()
    assert row == ("i", True, "s", False)


def test_a_young_database_plans_by_key(database_urls: DatabaseUrls) -> None:
    """The statistics that the migrations put there: one tenant has all the rows."""
    with psycopg.connect(database_urls.owner_url) as connection:
        rows = connection.execute("SELECT DISTINCT n_distinct FROM pg_stats WHERE attname = 'tenant_id'").fetchall()
    assert rows == [(1.0,)]
