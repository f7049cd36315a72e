"""The formats that operators read, and that every template escapes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from importlib.resources import files
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, nodes

from memory_os_console.rendering import (
    as_differences,
    as_duration,
    as_instant,
    as_pretty_json,
    as_sentence,
    as_short_id,
    as_utc,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0 s"), (0.44, "0.4 s"), (9.0, "9 s"), (9.96, "10.0 s"), (10.9, "10 s"), (59, "59 s"), (60, "1 min")),
        *(
            (185, "3 min 5 s"),
            (3600, "1 h"),
            (3605, "1 h"),
            (7800, "2 h 10 min"),
            (86_400, "1 d"),
            (356_400, "4 d 3 h"),
        ),
        (None, "unknown"),
    ],
)
def test_durations_in_their_two_largest_units(seconds: float | None, text: str) -> None:
    assert as_duration(seconds) == text


@given(st.floats(min_value=0, max_value=1e10, allow_nan=False))
def test_every_duration_has_a_text(seconds: float) -> None:
    assert as_duration(seconds)[0].isdigit()


@given(st.text())
def test_whatever_stands_in_a_row_is_an_instant_or_none(text: str) -> None:
    moment = as_instant(text)
    assert moment is None or moment.tzinfo is UTC


def test_instants_are_in_utc() -> None:
    vienna = timezone(timedelta(hours=1))
    assert as_utc(datetime(2026, 1, 31, 13, tzinfo=vienna)) == "2026-01-31 12:00:00 UTC"
    assert as_instant("2026-01-31T13:00:00+01:00") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert as_instant("2026-01-31T13:00:00") is None  # whose noon it is nobody knows
    assert as_instant("infinity") is None
    assert as_instant(None) is None


def test_small_formats() -> None:
    assert as_short_id("0199d2c4-5b1e-7c3a-9f00-3d5e8a1b2c4d") == "…8a1b2c4d"
    assert as_sentence("the graph is down") == "The graph is down."
    assert as_pretty_json({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((0, 0, 0, 0), "nothing"),
        ((3, 1, 0, 0), "3 missing, 1 extra"),
        ((0, 0, 1200, 0), "1,200 differing"),
        ((2, 0, 2, 3), "2 missing, 2 differing, 3 of them mended"),
    ],
)
def test_what_a_comparison_has_found_in_words(counts: tuple[int, ...], text: str) -> None:
    names = ("missing", "extra", "differing", "repaired")
    assert as_differences(SimpleNamespace(**dict(zip(names, counts, strict=True)))) == text


def test_no_template_switches_escaping_off() -> None:
    environment = Environment(autoescape=True)
    for template in (files("memory_os_console") / "templates").iterdir():
        parsed = environment.parse(template.read_text())
        used = {node.name for node in parsed.find_all(nodes.Filter)}
        assert not used & {"safe", "tojson", "forceescape", "xmlattr", "urlize"}, template.name
        assert not list(parsed.find_all((nodes.ScopedEvalContextModifier, nodes.EvalContextModifier))), template.name
