"""What the encoder lets through, and what it refuses before a server ever sees it."""

from __future__ import annotations

import enum
import math
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.graph.encoder import (
    ID_BYTES,
    INT_MAX,
    MAX_DEPTH,
    canonical_float,
    check_id,
    encode,
    is_id,
    render_query,
)
from memory_os.graph.port import GraphDataError


class Label(enum.StrEnum):
    EVENT = "Event"


class Loud(str):
    """A text that would say something else if its own methods were used."""

    __slots__ = ()

    def __str__(self) -> str:
        return '" DETACH DELETE n //'

    def __format__(self, _: str) -> str:
        return str(self)


class Sly(float):
    def __repr__(self) -> str:
        return "1 DETACH DELETE n"


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (INT_MAX, "9223372036854775807"),
        (-INT_MAX - 1, "-9223372036854775808"),
        (0.5, "0.5"),
        (2.0, "2.0"),
        (0.1 + 0.2, "0.3"),
        (1e22, "1e+22"),
        (-0.0, "-0.0"),
        ("", '""'),
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'),
        ("a\nb", '"a\nb"'),
        ("$x `y` 'z'", "\"$x `y` 'z'\""),
        ('\\"}) DETACH DELETE n //', r'"\\\"}) DETACH DELETE n //"'),
        ([], "[]"),
        ({}, "{}"),
        ([1, "a", ['"', None]], r'[1,"a",["\"",null]]'),
        ((1, 2), "[1,2]"),
        ({"end": 1, "x": {"y": [True]}}, "{`end`:1,`x`:{`y`:[true]}}"),
        (Label.EVENT, '"Event"'),
        (Loud("quiet"), '"quiet"'),
        ([Loud("quiet")], '["quiet"]'),
        (Sly(0.5), "0.5"),
    ],
)
def test_values_become_literals(value: object, literal: str) -> None:
    assert encode(value) == literal


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        1.7976931348623157e308,
        INT_MAX + 1,
        -INT_MAX - 2,
        "nul\x00",
        "\ud800",
        "a\udfffb",
        b"bytes",
        bytearray(b"bytes"),
        Decimal(1),
        Fraction(1, 2),
        1j,
        UUID(int=4),
        datetime(2026, 1, 1, tzinfo=UTC),
        {1, 2},
        object(),
        range(3),
        iter(()),
        {"": 1},
        {"a`b": 1},
        {"a b": 1},
        {"é": 1},
        {"1a": 1},
        {1: 1},
        {"k" * 65: 1},
        {"a\n": 1},
    ],
    ids=lambda value: f"{type(value).__name__} {ascii(value)[:8]}",
)
def test_everything_else_is_refused_at_any_depth(value: Any) -> None:
    for wrapped in (value, [value], [1, [value]], {"a": value}, {"a": [{"b": value}]}):
        with pytest.raises(GraphDataError):
            encode(wrapped)


def test_nesting_is_bounded_and_a_cycle_ends() -> None:
    nested: list[object] = []
    for _ in range(MAX_DEPTH - 1):
        nested = [nested]
    encode(nested)
    with pytest.raises(GraphDataError):
        encode([nested])
    nested[:] = [nested]
    with pytest.raises(GraphDataError):
        encode(nested)


def test_a_parameter_name_is_checked_like_a_key() -> None:
    assert render_query("RETURN $a", {"a": 1, "b": "x"}) == 'CYPHER a=1 b="x" RETURN $a'
    assert render_query("RETURN 1", {}) == "RETURN 1"
    with pytest.raises(GraphDataError):
        render_query("RETURN 1", {"a=1 DELETE n //": 1})


@pytest.mark.parametrize("value", [True, "1", None, Decimal(1), 10**400])
def test_a_float_is_a_number(value: object) -> None:
    with pytest.raises(GraphDataError):
        canonical_float(value)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300))
def test_a_canonical_float_stays_as_it_is(value: float) -> None:
    once = canonical_float(value)
    assert canonical_float(once) == once
    assert float(format(once, ".15g")) == once
    assert math.isclose(once, value, rel_tol=1e-14)


@given(st.floats(0, 5), st.floats(0, 5))
def test_canonical_floats_keep_their_order(a: float, b: float) -> None:
    low, high = sorted([a, b])
    assert canonical_float(low) <= canonical_float(high)


@given(st.text())
def test_a_text_ends_only_at_its_own_quote(text: str) -> None:
    """Read back by the two rules of a Cypher text, the literal is the text, or there is no literal."""
    try:
        literal = encode(text)
    except GraphDataError:
        assert "\x00" in text
        return
    assert literal[0] == literal[-1] == '"'
    read, rest = [], iter(literal[1:-1])
    for character in rest:
        assert character != '"'
        read.append(next(rest) if character == "\\" else character)
    assert "".join(read) == text
    assert encode([text]) == f"[{literal}]"


@pytest.mark.parametrize("value", ["a", "a b", "%", "\u00a0", "é" * (ID_BYTES // 2), "z" * ID_BYTES, "0"])
def test_ids_that_an_index_finds_again(value: str) -> None:
    assert check_id(value) == value
    assert is_id(value)


@pytest.mark.parametrize(
    "value", ["", " ", " a", "a ", "\ta", "a\n", "a\x01b", "\x00", "\ud800", "é" * 2049, "z" * 4097, 1, None, b"a"]
)
def test_ids_that_an_index_would_lose(value: object) -> None:
    assert not is_id(value)
