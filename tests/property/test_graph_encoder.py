"""Whatever the encoder lets through comes back from the real server as it went in."""

from __future__ import annotations

import asyncio
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fixtures.falkor import FalkorProcess

from memory_os.graph.encoder import canonical_float, is_id, render_query
from memory_os.graph.falkor_server import FalkorAddress, FalkorServer
from memory_os.graph.port import GraphDataError

texts = st.text() | st.text(st.characters(max_codepoint=0x7F)) | st.text(st.sampled_from("\\\"'`$\n\r\t{}[]():,/*- "))
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
keys = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=10)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5), max_leaves=15
)
relaxed = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def as_stored(value: object) -> object:
    """The value as it is expected back: floats with the digits that are stored."""
    if isinstance(value, float):
        return canonical_float(value)
    if isinstance(value, list):
        return [as_stored(item) for item in value]
    if isinstance(value, dict):
        return {key: as_stored(item) for key, item in value.items()}
    return value


async def send(server: FalkorProcess, prefix: str, *queries: str) -> list[object]:
    connection = FalkorServer(FalkorAddress(server.host, server.port))
    try:
        return [await connection.write(f"{prefix}:graph", query) for query in queries]
    finally:
        await connection.close()


@relaxed
@given(batch=st.lists(values, min_size=1, max_size=20))
def test_a_value_comes_back_or_is_refused(
    falkor_server: FalkorProcess, falkor_prefix: str, batch: list[object]
) -> None:
    queries, expected = [], []
    for value in batch:
        try:
            query = render_query("RETURN $value, $value = $value", {"value": value})
        except GraphDataError:
            continue
        queries.append(query)
        expected.append(as_stored(value))
    for value, rows in zip(expected, asyncio.run(send(falkor_server, falkor_prefix, *queries)), strict=True):
        assert isinstance(rows, list)
        assert rows[0][0] == value
        assert repr(rows[0][0]) == repr(value)  # 1, 1.0 and True are equal, but not the same


@relaxed
@given(ids=st.lists(texts, min_size=1, max_size=30, unique=True))
def test_an_id_that_is_let_through_is_found_by_the_index_and_no_other(
    falkor_server: FalkorProcess, falkor_prefix: str, ids: list[str]
) -> None:
    good = [key for key in ids if is_id(key)]
    make = "UNWIND $ids AS id MERGE (n:Memory {id: id})"
    queries = [
        "MATCH (n) DELETE n",
        render_query(make, {"ids": good}),
        render_query(make, {"ids": good}),
        render_query("UNWIND $ids AS id MATCH (n:Memory {id: id}) RETURN id, n.id", {"ids": good}),
    ]
    with falkor_server.connect() as client:
        if not client.exists(f"{falkor_prefix}:graph"):
            client.execute_command("GRAPH.QUERY", f"{falkor_prefix}:graph", "CREATE INDEX FOR (n:Memory) ON (n.id)")
    found = asyncio.run(send(falkor_server, falkor_prefix, *queries))[-1]
    assert found == [[key, key] for key in good]


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0.1 + 0.2, 1e22, 5e-324, -0.0, 2.0, "\x7f\u2028\ufeff\uffff"])
def test_the_edges_of_what_is_let_through(falkor_server: FalkorProcess, falkor_prefix: str, value: object) -> None:
    rows = asyncio.run(send(falkor_server, falkor_prefix, render_query("RETURN $value", {"value": value})))[0]
    assert repr(rows) == repr([[as_stored(value)]])
