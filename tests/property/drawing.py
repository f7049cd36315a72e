"""What histories draw: names, what users do, where workers fail. Small numbers and words, so that a history shrinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st
from tests.property.mortal_workers import Fate, Kind

from memory_os.records.model import RecordLayer

# Some are found only once they are declared, some lie within others, some are no words to a search index.
NAMES = (
    *("Ann Miller", "Bob Stone", "Miller", "harbour light", "Ann Miller Group", "Will"),
    *("\u5c71\u7530\u592a\u90ce", "Node.js", "room 10.1", "the o'brien trust", "c++ guild"),
    *(
        f"{first} {last}"
        for first, last in product(
            ("Carl", "Dora", "Emil", "Fay", "Gus", "Ida", "Jon", "Kay", "Leo"),
            ("Berg", "Lind", "Novak", "Ortiz", "Hale", "Quist", "Vance", "Ruiz", "Sand", "Wolf"),
        )
    ),
)
SHARED = 3
EDGE_TYPES = ("SUPPORTS", "SUPERSEDES", "ABOUT", "PART_OF")
RECORD_LAYERS: tuple[RecordLayer, ...] = ("observation", "procedure", "outcome")
LAYERS = ("entity", "memory", *RECORD_LAYERS)

# --- what users do; what is written twice happens twice as often
_MEMORIES = (*("store", "store", "store", "rewrite", "rewrite", "rewrite"), *("change", "forget", "forget", "restore"))
_NAMED = ("declare", "declare", "rename", "realias", "undeclare", "merge", "split")
_RELATIONS = ("tie", "tie", "untie", "link", "link", "unlink", "close_link", "keep_record", "drop_record")
THEMES = (
    _MEMORIES,
    (*_MEMORIES, *_NAMED),
    (*_MEMORIES, *_RELATIONS),
    (*_MEMORIES, *_NAMED, *_RELATIONS),
)
"""A history keeps to a theme: what mixes everything gets nowhere far."""

# --- what befalls the queue and the graph
MISFORTUNES = (
    *("expire", "make_due", "wear_out", "revive", "discard", "shuffle", "cure", "reopen"),
    *("deliver_again", "deliver_again", "deliver_again", "poison", "poison", "poison"),
)
HEALING = ("lose_graph", "call_rebuild_off")

# --- where workers fail
_TURN = (
    *("after:lease_tenant", "before:take_fence", "after:take_fence", "after:recognise_graph", "after:claim_events"),
    *("after:extract_again", "after:projected_memories", "before:mentioned_entities", "after:mentioned_entities"),
    *("in:projected_entities", "after:projected_entities", "after:projected_entities", "after:mark_extracted"),
    *("before:apply", "before:apply", "after:apply", "in:finish_events", "after:finish_events", "after:fail_event"),
    "after:refund_events",
)
_REBUILD = (
    *("after:claim_rebuild", "after:take_fence", "after:mark_extracted", "before:begin_rebuild", "after:load"),
    *("after:page_of_memories", "after:page_of_entities", "after:rebuild_progress", "after:expect_graph"),
    *("before:finish_rebuild", "after:finish_rebuild", "in:rebuild_end", "after:rebuild_end", "before:apply"),
)
_OF_THE_GRAPH = ("mentioned_entities", "take_fence", "apply", "load", "begin_rebuild", "finish_rebuild")
"""Calls of the backend; all other points are of the database."""


def _kinds_at(place: str) -> Iterator[Kind]:
    yield "crash"
    yield "graph lost" if place.endswith(_OF_THE_GRAPH) else "base lost"
    if not place.startswith("in:"):
        yield from ("park", "park")


def _fates(places: tuple[str, ...]) -> st.SearchStrategy[Fate]:
    """Nothing, or something at a named point or at any."""
    at = [Fate(kind, place, nth) for place in places for nth in (1, 1, 2) for kind in _kinds_at(place)]
    anywhere = st.builds(Fate, st.sampled_from(("crash", "park", "graph lost", "base lost")), nth=st.integers(1, 40))
    return st.just(Fate()) | st.just(Fate()) | st.sampled_from(at) | st.sampled_from(at) | anywhere


# --- strategies
number = st.integers(0, 7)
"""Which one, the newest first."""

name = st.integers(0, SHARED - 1) | st.integers(0, SHARED - 1) | st.integers(SHARED, SHARED + len(NAMES) - 1)
"""One of those that a history shares, or any: names are rare, and what is dense hides faults."""

names = st.lists(name, min_size=1, max_size=3)
spellings = st.sampled_from(("as it is", "as it is", "as it is", "upper", "lower"))
mostly = st.sampled_from((True, True, True, False))
seldom = st.sampled_from((False, False, False, True))
fates_of_turns = _fates(_TURN)
fates_of_rebuilds = _fates(_REBUILD)


def spelt(text: str, spelling: str) -> str:
    """A name in one of the spellings."""
    return {"as it is": text, "upper": text.upper(), "lower": text.lower()}[spelling]


@dataclass(frozen=True, slots=True)
class Setting:
    """What is settled before a history begins.

    Attributes:
        shared: The names that memories share.
        theme: What users do.
        heals: Whether graphs may be lost, rebuilt and repaired in it, which mends what was wrong with them.
        batches: How many events each worker claims at once.
        stored: The names in the memories that are there from the start.
        declared: The names that are declared from the start.
    """

    shared: tuple[str, ...]
    theme: tuple[str, ...]
    heals: bool
    batches: tuple[int, int]
    stored: tuple[tuple[int, ...], ...]
    declared: tuple[int, ...]


def settings_of_histories(batches: tuple[int, ...]) -> st.SearchStrategy[Setting]:
    """Settings, with batches of these sizes."""
    return st.builds(
        Setting,
        shared=st.tuples(*[st.sampled_from(NAMES)] * SHARED),
        theme=st.sampled_from(THEMES),
        heals=seldom,
        batches=st.tuples(st.sampled_from(batches), st.sampled_from(batches)),
        stored=st.lists(names.map(tuple), min_size=1, max_size=3).map(tuple),
        declared=st.lists(name, max_size=1).map(tuple),
    )
