"""Differences as a page shows them."""

from __future__ import annotations

from typing import Any

from memory_os.projection.verifications import FoundDifference
from memory_os_console.differences import entities_of, show_difference
from memory_os_console.tenants import find_uuid

ENTITY = "0199d2c4-5b1e-7c3a-9f00-3d5e8a1b2c4d"
MEMORY = "0199d2c4-5b1e-7c3a-9f00-3d5e8a1b2c4e"
NODE = {"id": ENTITY, "name": "Anna Berg", "type": "person", "strength": 1.5, "declared": True}


def difference(part: str, kind: str, key: list[str], expected: Any, found: Any) -> FoundDifference:
    return FoundDifference(part, kind, key, expected, found)


def names() -> dict[Any, str]:
    return {find_uuid(ENTITY): "Anna Berg"}


def test_of_two_rows_only_what_differs_is_shown() -> None:
    shown = show_difference(difference("entities", "differing", [ENTITY], NODE, {**NODE, "strength": 2.0}), {})
    assert (shown.expected, shown.found) == ([[("strength", "1.5")]], [[("strength", "2.0")]])
    assert shown.key == [(ENTITY, True)]


def test_names_show_only_of_entities_that_the_reader_may_see() -> None:
    renamed = difference("entities", "differing", [ENTITY], NODE, {**NODE, "name": "wrong"})
    assert entities_of([renamed]) == {find_uuid(ENTITY)}
    shown = show_difference(renamed, names())
    assert (shown.expected, shown.found) == ([[("name", "Anna Berg")]], [[("name", "wrong")]])
    hidden = show_difference(renamed, {})
    assert (hidden.expected, hidden.found) == ([[("name", "not shown")]], [[("name", "not shown")]])


def test_what_a_link_says_is_never_shown() -> None:
    end = {"kind": "memory", "id": MEMORY}
    link = {"id": ENTITY, "entity_id": ENTITY, "target": end, "relationship": "secret", "confidence": 1.0}
    link |= {"valid_from": 1_767_225_600_000_000, "valid_to": None}
    shown = show_difference(difference("links", "missing", [ENTITY], link, None), names())
    assert shown.found == []
    assert shown.expected == [
        [
            ("entity id", ENTITY),
            *(("target", f"memory {MEMORY}"), ("relationship", "not shown"), ("confidence", "1.0")),
            ("valid from", "2026-01-01 00:00:00 UTC"),
        ]
    ]


def test_what_stands_twice_shows_twice() -> None:
    pair = {"a": ENTITY, "b": MEMORY, "weight": 0.2, "count": 1}
    found = [pair, {**pair, "count": 2}]
    shown = show_difference(difference("co_occurrences", "extra", [ENTITY, MEMORY], pair, found), {})
    assert shown.part == "co-occurrences"
    assert shown.found == [[("weight", "0.2"), ("count", "1")], [("weight", "0.2"), ("count", "2")]]


def test_keys_and_values_of_a_corrupted_graph_are_taken_as_they_are() -> None:
    odd = {"id": "<b>", "name": "x", "type": "y", "strength": 1.0, "declared": False}
    shown = show_difference(difference("entities", "extra", ["<b>"], None, odd), names())
    assert (shown.key, shown.expected) == ([("<b>", False)], [])
    assert shown.found == [
        [("name", "not shown"), ("type", "y"), ("strength", "1.0"), ("declared", "no")],
    ]
    late = {"id": MEMORY, "label": "Skill", "status": "active", "version": 1, "valid_from": 10**30}
    shown = show_difference(difference("memories", "extra", [MEMORY], None, late), {})
    assert ("valid from", f"{10**30} µs after 1970") in shown.found[0]
    assert show_difference(difference("records", "extra", [], None, {"kind": "record", "id": "r"}), {}).key == []
