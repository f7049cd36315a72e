"""Array literals come back from Postgres as they went in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fixtures.postgres import DatabaseUrls

from memory_os.storage.arrays import array_literal

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive


@pytest.fixture
def connection(database_urls: DatabaseUrls) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_urls.app_url, autocommit=True) as opened:
        yield opened


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.one_of(
        st.tuples(st.just("uuid"), st.lists(st.uuids())),
        st.tuples(st.just("bigint"), st.lists(st.integers(-(2**63), 2**63 - 1))),
        st.tuples(st.just("float8"), st.lists(st.floats(allow_nan=False, allow_infinity=False))),
        st.tuples(st.just("text"), st.lists(st.one_of(st.none(), TEXTS))),
        st.tuples(st.just("timestamptz"), st.lists(MOMENTS)),
    )
)
def test_an_array_comes_back(connection: psycopg.Connection[Any], case: tuple[str, list[object]]) -> None:
    kind, values = case
    row = connection.execute(f"SELECT %s::{kind}[]", (array_literal(values),)).fetchone()
    assert row is not None
    assert row[0] == values


def test_other_types_are_refused() -> None:
    for value in (True, b"x", {"a": 1}, [1]):
        with pytest.raises(TypeError):
            array_literal([value])
