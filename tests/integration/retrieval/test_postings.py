"""Postings follow their records: after any history they are what the rows, as they are, would give."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fixtures.postgres import DatabaseUrls, clone_database

from memory_os.domain.ids import new_id
from memory_os.domain.search_text import search_text
from memory_os.domain.text_ranking import impact
from memory_os.embedded.postgres import EmbeddedPostgres

Posting = tuple[int, float, int, UUID, str]
KINDS = {"memories": 1, "observations": 2, "procedures": 3, "outcomes": 4, "entities": 5, "passages": 6}
SAID = ("gearbox", "oil", "the", "winter", "Gearboxes", "c++", "東京", "who")
WORDS = st.lists(st.sampled_from(SAID), min_size=1, max_size=9)
TEXTS = WORDS.map(" ".join)
USERS = st.sampled_from(["ada", "ben", "cleo"])
READERS = st.fixed_dictionaries(
    {
        "visibility": st.sampled_from(["tenant", "private", "restricted"]),
        "user_id": USERS,
        "reader_users": st.lists(USERS, max_size=3),
        "reader_groups": st.lists(st.sampled_from(["ops", "qa"]), max_size=2),
    }
)
STATES = st.sampled_from(["active", "completed", "disputed", "superseded", "expired", "archived", "retracted"])
ENDS = st.sampled_from([None, "2020-01-01", "2999-01-01"])


@pytest.fixture(scope="module")
def owner(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[psycopg.Connection[Any]]:
    """The superuser on a database that every history uses, each in a tenant of its own."""
    for urls in clone_database(postgres_server, template_database):
        with psycopg.connect(urls.owner_url, autocommit=True) as connection:
            yield connection


def tenant(connection: psycopg.Connection[Any]) -> UUID:
    ident = new_id()
    connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'a tenant')", (ident,))
    return ident


def put(connection: psycopg.Connection[Any], table: str, tenant_id: UUID, text: str, **fields: Any) -> UUID:
    values: dict[str, Any] = {"tenant_id": tenant_id, "id": new_id(), **fields}
    if table == "memories":
        values |= {"label": "Attribute", "layer": "identity", "text": text}
    elif table == "passages":
        values |= {"text": text}
    elif table == "entities":
        values |= {"name": text, "entity_type": "thing", "declared": values.get("declared", True)}
    else:
        values |= {"title": text}
    vector = {} if table == "entities" else {"search": search_text(text)}
    marks = ["%s"] * len(values) + ["memory_os_text_vector(%s)"] * len(vector)
    connection.execute(
        f"INSERT INTO {table} ({', '.join([*values, *vector])}) VALUES ({', '.join(marks)})",
        [*values.values(), *vector.values()],
    )
    ident: UUID = values["id"]
    return ident


def stored(connection: psycopg.Connection[Any], tenant_id: UUID) -> list[Posting]:
    return sorted(
        connection.execute(
            "SELECT term, impact, kind, record_id, reader FROM postings WHERE tenant_id = %s", (tenant_id,)
        ).fetchall()
    )


def expected(connection: psycopg.Connection[Any], tenant_id: UUID) -> list[Posting]:
    """The postings of all rows, without the functions that the triggers use but for the hash."""
    found = []
    for table, kind in KINDS.items():
        past = {"memories": "status", "passages": "NULL::text"}.get(table, "status")
        ends = "valid_to <= updated_at OR valid_to IS NULL" if table == "memories" else "true"
        declared = "declared" if table == "entities" else "true"
        rows = connection.execute(
            f"SELECT id, visibility, user_id, reader_users, reader_groups, {past}, {ends}, "
            "(SELECT json_agg(json_build_array(lexeme, cardinality(positions))) FROM unnest(ts_filter(search, '{d}'))) "
            f"FROM {table} WHERE tenant_id = %s AND {declared}",
            (tenant_id,),
        ).fetchall()
        for ident, visibility, user, users, groups, status, ended, stems in rows:
            readers = {"tenant": {""}, "private": {f"u{user}"}}.get(
                visibility, {f"u{name}" for name in (user, *users)} | {f"g{name}" for name in groups}
            )
            words = [*((word, impact(times, len(stems))) for word, times in stems or ()), ("", 0.0)]
            gone = is_past(table, status, ended=ended)
            for reader in readers:
                for word, weight in words:
                    row = connection.execute(
                        "SELECT memory_os_term(memory_os_scope(%s, %s), %s)", (reader, gone, word)
                    ).fetchone()
                    assert row is not None
                    (single,) = struct.unpack("f", struct.pack("f", weight))
                    found.append((row[0], single, kind, ident, reader))
    return sorted(found)


def is_past(table: str, status: str | None, *, ended: bool) -> bool:
    if table == "memories":
        return status in ("archived", "retracted") or (status in ("superseded", "expired") and ended)
    return status not in (None, "active")


def assert_equal(connection: psycopg.Connection[Any], tenant_id: UUID) -> None:
    found = stored(connection, tenant_id)
    wanted = expected(connection, tenant_id)
    assert [(*one[:1], round(one[1], 5), *one[2:]) for one in found] == [
        (*one[:1], round(one[1], 5), *one[2:]) for one in wanted
    ]


Step = Callable[[psycopg.Connection[Any], UUID, list[tuple[str, UUID]]], None]


@st.composite
def steps(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    kind = draw(st.sampled_from(["put", "put", "text", "readers", "state", "touch", "delete", "source", "drop"]))
    values: dict[str, Any] = {"text": draw(TEXTS), "readers": draw(READERS), "at": draw(st.integers(0, 99))}
    values |= {"status": draw(STATES), "valid_to": draw(ENDS), "declared": draw(st.booleans())}
    values |= {"table": draw(st.sampled_from([name for name in KINDS if name != "passages"]))}
    return kind, values


def apply(
    connection: psycopg.Connection[Any],
    tenant_id: UUID,
    there: list[tuple[str, UUID]],
    kind: str,
    values: dict[str, Any],
) -> None:
    if kind == "put":
        extra = {"declared": values["declared"]} if values["table"] == "entities" else {}
        there.append(
            (values["table"], put(connection, values["table"], tenant_id, values["text"], **values["readers"], **extra))
        )
    elif kind == "source":
        source = new_id()
        names = {"tenant_id": tenant_id, "id": source, "kind": "document", "title": "x", **values["readers"]}
        connection.execute(
            f"INSERT INTO sources ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})", [*names.values()]
        )
        for number in range(3):
            put(connection, "passages", tenant_id, values["text"], source_id=source, ordinal=number)
        there.append(("sources", source))
    elif kind == "drop":
        connection.execute("DELETE FROM memories WHERE tenant_id = %s AND user_id = 'ada'", (tenant_id,))
        there[:] = [one for one in there if one[0] != "memories"]
    elif there:
        change(connection, there, there[values["at"] % len(there)], kind, values)


def change(
    connection: psycopg.Connection[Any],
    there: list[tuple[str, UUID]],
    one: tuple[str, UUID],
    kind: str,
    values: dict[str, Any],
) -> None:
    table, ident = one
    sets: dict[str, Any] = {}
    if kind == "delete":
        connection.execute(f"DELETE FROM {table} WHERE id = %s", (ident,))
        there.remove(one)
    elif kind == "readers":
        sets = values["readers"]
    elif kind == "touch":
        connection.execute(f"UPDATE {table} SET version = version + 1, updated_at = now() WHERE id = %s", (ident,))
    elif kind == "text" and table == "entities":
        sets = {"name": values["text"], "declared": values["declared"]}
    elif kind == "text" and table != "sources":
        connection.execute(
            f"UPDATE {table} SET search = memory_os_text_vector(%s) WHERE id = %s", (search_text(values["text"]), ident)
        )
    elif kind == "state" and table == "memories":
        sets = {"status": values["status"], "valid_to": values["valid_to"]}
    elif kind == "state" and table != "sources":
        sets = {"status": "archived"}
    if sets:
        names = ", ".join(f"{name} = %s" for name in sets)
        connection.execute(f"UPDATE {table} SET {names} WHERE id = %s", [*sets.values(), ident])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(steps(), max_size=14))
def test_postings_are_those_of_the_rows_after_any_history(
    owner: psycopg.Connection[Any], history: list[tuple[str, dict[str, Any]]]
) -> None:
    tenant_id = tenant(owner)
    there: list[tuple[str, UUID]] = []
    for kind, values in history:
        apply(owner, tenant_id, there, kind, values)
    assert_equal(owner, tenant_id)
    for table in ("sources", *(name for name in KINDS if name != "passages")):
        owner.execute(f"DELETE FROM {table} WHERE tenant_id = %s", (tenant_id,))
    assert stored(owner, tenant_id) == []


def test_many_rows_change_in_one_statement(owner: psycopg.Connection[Any]) -> None:
    tenant_id = tenant(owner)
    for number in range(50):
        put(owner, "memories", tenant_id, f"gearbox oil number{number}")
    assert_equal(owner, tenant_id)
    owner.execute("UPDATE memories SET status = 'archived' WHERE tenant_id = %s AND id::text < '8'", (tenant_id,))
    owner.execute("UPDATE memories SET visibility = 'private', user_id = 'ada' WHERE tenant_id = %s", (tenant_id,))
    assert_equal(owner, tenant_id)
    owner.execute("DELETE FROM memories WHERE tenant_id = %s", (tenant_id,))
    assert stored(owner, tenant_id) == []


def test_the_impact_of_the_database_is_that_of_the_domain(owner: psycopg.Connection[Any]) -> None:
    for times in (0, 1, 2, 7, 255):
        for length in (1, 5, 16, 300, 30_000):
            row = owner.execute("SELECT memory_os_impact(%s, %s)", (times, length)).fetchone()
            assert row is not None
            assert row[0] == pytest.approx(impact(times, length), rel=1e-6)


def test_occurrences_are_read_from_the_rank(owner: psycopg.Connection[Any]) -> None:
    for times in range(1, 256):
        row = owner.execute(
            "SELECT memory_os_frequency(v, 'oil'), memory_os_frequency(v, 'the'), memory_os_frequency(v, 'pump') "
            "FROM memory_os_text_vector(repeat('the oil ', %s)) AS v",
            (times,),
        ).fetchone()
        assert row == (times, 0, 0)


def test_what_a_row_was_before_the_index_is_found_by_it_after(
    database_urls: DatabaseUrls,
) -> None:
    """A migration of rows: down to the revision before, rows written as it did, and up again."""
    from memory_os.storage.migrate import downgrade, upgrade  # noqa: PLC0415 - one test alone migrates

    downgrade(database_urls.owner_url, "0008")
    with psycopg.connect(database_urls.owner_url, autocommit=True) as connection:
        tenant_id = tenant(connection)
        vector = "to_tsvector('english', %s) || to_tsvector('simple', %s)"
        for status in ("active", "archived"):
            connection.execute(
                "INSERT INTO memories (tenant_id, id, label, layer, status, title, text, search) "
                f"VALUES (%s, %s, 'Attribute', 'identity', %s, 'The pump', 'getUserName leaks', {vector})",
                (tenant_id, new_id(), status, *[search_text("The pump\ngetUserName leaks")] * 2),
            )
        connection.execute(
            f"INSERT INTO outcomes (tenant_id, id, title, summary, search) VALUES (%s, %s, 'Oil', '', {vector})",
            (tenant_id, new_id(), "oil", "oil"),
        )
        connection.execute(
            "INSERT INTO entities (tenant_id, id, declared, name, entity_type) VALUES (%s, %s, true, 'Pumps', 'thing')",
            (tenant_id, new_id()),
        )
    upgrade(database_urls.owner_url)
    with psycopg.connect(database_urls.owner_url, autocommit=True) as connection:
        assert_equal(connection, tenant_id)
        rows = connection.execute(
            "SELECT kind, count(*) FROM postings WHERE tenant_id = %s GROUP BY kind ORDER BY kind", (tenant_id,)
        ).fetchall()
        pump = ("memory_os_text_vector(%s)", search_text("The pump\ngetUserName leaks"))
        assert connection.execute(f"SELECT DISTINCT search = {pump[0]} FROM memories", pump[1:]).fetchall() == [(True,)]
    assert [kind for kind, _ in rows] == [1, 4, 5]
    assert rows[1:] == [(4, 2), (5, 2)]
