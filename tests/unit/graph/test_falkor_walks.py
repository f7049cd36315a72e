"""What is asked about the nodes of a hop, and how the answers are read."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest
from tests.fixtures.graphs import eref, mref

from memory_os.graph.expansion import HUB, Edge, Neighbourhood, Reach
from memory_os.graph.falkor_hubs import MOST, REMEMBERED_S, KnownHubs
from memory_os.graph.falkor_walks import (
    SCAN_TOGETHER,
    DerivedEdges,
    ask_declared,
    ask_derived,
    overflows,
    read_around,
    read_derived,
)

TENANT, OTHER = UUID(int=1), UUID(int=2)
LAST = Reach(first=False, last=True)


def no_hubs(_family: str, _ids: Sequence[str]) -> set[str]:
    return set()


def test_a_known_hub_is_not_asked_for_and_counts_as_one() -> None:
    asked = ask_derived({"entity": ["hub", "rare"]}, LAST, lambda _, ids: {"hub"}.intersection(ids))
    assert '"rare"' in asked.text
    assert '"hub"' not in asked.text
    derived = read_derived(asked, [[["mentions", "entity", "rare", 1, ["m"], [2.5]]]])
    around = read_around(LAST, derived, [])
    assert around == {
        eref("hub"): Neighbourhood(HUB, []),
        eref("rare"): Neighbourhood(1, [Edge(0.5, "MENTIONS", None, False, "memory", "m")]),
    }


def test_where_all_are_known_hubs_nothing_is_asked() -> None:
    asked = ask_derived({"entity": ["hub"]}, LAST, lambda _, ids: set(ids))
    assert asked.text == ""
    assert read_around(LAST, read_derived(asked, []), []) == {eref("hub"): Neighbourhood(HUB, [])}


def test_an_answer_tells_of_new_hubs_and_of_the_types_that_there_are() -> None:
    asked = ask_derived({"entity": ["a"]}, Reach(first=True, last=False), no_hubs)
    reply = [
        ["types", "", "", 0, ["Memory", "SUPPORTS"], []],
        ["mentions", "entity", "a", 1, ["m"], [5.0]],
        ["co_occurrences", "entity", "a", HUB + 1, None, None],
    ]
    derived = read_derived(asked, [reply])
    assert derived.new_hubs == [("co_occurrences", "a")]
    assert derived.types == ["Memory", "SUPPORTS"]
    assert read_derived(asked, []) == DerivedEdges({}, [], ())  # no graph


def test_declared_edges_are_asked_for_only_by_the_types_that_there_are() -> None:
    assert ask_declared({"memory": ["m"]}, [], 7) == []
    (text,) = ask_declared({"memory": ["m"], "record": ["r"]}, ["SUPPORTS"], 7)
    assert "[e:SUPPORTS]" in text
    assert 'nodes=[["m","",""],["","","r"]]' in text


def test_an_edge_from_a_node_to_itself_is_no_edge() -> None:
    loop = ["Memory", "m", "SUPPORTS", "s", True, 0.5, "Memory", "m", None]
    other = ["Memory", "m", "SUPPORTS", "t", True, 0.5, "Entity", "m", None]
    around = read_around(LAST, DerivedEdges({}, [], ()), [[loop, other]])
    assert around == {mref("m"): Neighbourhood(1, [Edge(0.5, "SUPPORTS", "t", True, "entity", "m")])}


@pytest.mark.parametrize(("rows", "expected"), [(SCAN_TOGETHER - 1, False), (SCAN_TOGETHER, True)])
def test_a_full_answer_may_have_left_nodes_out(rows: int, expected: bool) -> None:
    assert overflows([[], [[]] * rows]) is expected


def test_hubs_are_known_for_a_while_by_tenant_and_family() -> None:
    now = [0.0]
    hubs = KnownHubs(lambda: now[0])
    hubs.remember(TENANT, [("mentions", "a"), ("co_occurrences", "b")])
    now[0] = REMEMBERED_S - 1
    assert hubs.among(TENANT, "mentions", ["a", "b", "c"]) == {"a"}
    assert hubs.among(TENANT, "co_occurrences", ["a", "b"]) == {"b"}
    assert hubs.among(OTHER, "mentions", ["a"]) == set()
    now[0] = REMEMBERED_S
    assert hubs.among(TENANT, "mentions", ["a"]) == set()


def test_no_more_hubs_are_remembered_than_there_is_room_for() -> None:
    hubs = KnownHubs(lambda: 0.0)
    hubs.remember(TENANT, [("mentions", str(number)) for number in range(MOST)])
    hubs.remember(TENANT, [("mentions", "new")])
    assert hubs.among(TENANT, "mentions", ["0", "new"]) == {"new"}
