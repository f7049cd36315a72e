"""From paths to records: scores made of what the reader sees, and paths dropped whole."""

from __future__ import annotations

from datetime import UTC, datetime
from math import sqrt
from uuid import UUID

import pytest

from memory_os.graph.expansion import HUB, damping
from memory_os.graph.port import NodeRef, Path, Seed, Step
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.hydrating import Hydrated, Record
from memory_os.retrieval.model import PathNode
from memory_os.retrieval.trails import (
    ASKED,
    CALLED,
    CO_OCCURRENCE,
    KNOWN,
    MENTIONED,
    NAME_CHARS,
    PASSING,
    SUBJECT,
    TYPED,
    follow,
    shorten,
)
from memory_os.retrieval.walking import node_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def memory(number: int) -> NodeRef:
    return NodeRef("memory", str(UUID(int=number)))


def person(number: int) -> NodeRef:
    return NodeRef("entity", str(UUID(int=number)))


def record(kind: str, number: int, name: str, *, title: str | None = None, declared: bool = True) -> Record:
    ref = Ref("memory" if kind == "memory" else "entity", UUID(int=number))
    return Record(
        ref, None, title or (name if kind == "entity" else None), name, NOW, "active", None, None, 1.0, declared, None
    )


def hydrated(*records: Record, edges: dict[str, int] | None = None, links: frozenset[str] = frozenset()) -> Hydrated:
    return Hydrated({node_of(one.ref): one for one in records}, edges or {}, links, frozenset(), ())


def step(kind: str, node: NodeRef, *, edge: str | None = "e", weight: float = 0.8, forward: bool = True) -> Step:
    return Step(kind, edge, forward, weight, node)


def test_a_trail_tells_how_it_came() -> None:
    seen = hydrated(
        record("memory", 1, "Detroit pizza"), record("memory", 2, "Cooking"), record("memory", 3, "Food truck"),
        edges={"e": 4},
    )  # fmt: skip
    path = Path(memory(1), (step("PART_OF", memory(2)), step("ADVANCES", memory(3), forward=False)), 0.1)
    trails = follow([path], [Seed(memory(1), 0.9)], [], seen, 12)
    near, far = trails
    assert near.words == "query -> Detroit pizza -PART_OF-> Cooking"
    assert far.words == "query -> Detroit pizza -PART_OF-> Cooking ←ADVANCES- Food truck"
    assert far.nodes[-1] == PathNode(UUID(int=3), "memory", "ADVANCES", against=True)
    assert near.score == pytest.approx(0.9 * sqrt(0.8) * TYPED)
    assert far.score == pytest.approx(near.score * sqrt(0.8) * TYPED * PASSING)
    assert (near.reinforced, far.reinforced) == (4, 4)


def test_a_relation_that_the_question_asks_for_counts_more() -> None:
    seen = hydrated(
        record("memory", 1, "Food truck"), record("memory", 2, "Fun"), record("memory", 3, "Oven"), edges={"e": 0}
    )
    paths = [
        Path(memory(1), (step("CAUSED_BY", memory(2)),), 0.1),
        Path(memory(1), (step("USES", memory(3), weight=0.9),), 0.1),
    ]
    seeds = [Seed(memory(1), 0.9)]
    assert [one.ref.id.int for one in follow(paths, seeds, [], seen, 12)] == [3, 2]
    asked = follow(paths, seeds, [], seen, 12, question="Why is there a food truck?")
    assert [one.ref.id.int for one in asked] == [2, 3]
    assert asked[0].score == pytest.approx(0.9 * sqrt(0.8) * ASKED)
    assert asked[1].score == pytest.approx(0.9 * sqrt(0.9) * TYPED)


def test_a_path_with_anything_hidden_leaves_no_trail() -> None:
    path = Path(memory(1), (step("PART_OF", memory(2)), step("ADVANCES", memory(3))), 0.1)
    seeds = [Seed(memory(1), 0.9)]
    ends = (record("memory", 1, "a"), record("memory", 3, "c"))
    assert follow([path], seeds, [], hydrated(*ends, edges={"e": 0}), 12) == []
    whole = (*ends, record("memory", 2, "b"))
    assert follow([path], seeds, [], hydrated(*whole), 12) == []  # the edge is gone
    assert follow([path], seeds, [], hydrated(*whole[1:], edges={"e": 0}), 12) == []  # the seed is hidden
    assert len(follow([path], seeds, [], hydrated(*whole, edges={"e": 0}), 12)) == 2


def test_counts_of_hidden_records_are_no_part_of_a_score() -> None:
    seen = hydrated(record("entity", 1, "John"), record("entity", 2, "Acme"), record("memory", 3, "m"))
    seen = Hydrated(seen.records, {}, frozenset(), frozenset({(str(UUID(int=1)), str(UUID(int=2)))}), ())

    def score(weight: float) -> float:
        steps = (
            step("CO_OCCURS", person(2), edge=None, weight=weight),
            step("MENTIONS", memory(3), edge=None, weight=0.14, forward=False),
        )
        (trail, *_) = [
            one
            for one in follow([Path(person(1), steps, weight)], [Seed(person(1), 1.0)], [], seen, 12)
            if one.ref.type == "memory"
        ]
        return trail.score

    assert score(0.1) == score(1.0)
    assert score(1.0) == pytest.approx(CO_OCCURRENCE * MENTIONED / damping(HUB))


def bridge(over: int, to: int) -> Path:
    there = step("MENTIONS", person(over), edge=None, weight=0.14)
    return Path(memory(1), (there, step("MENTIONS", memory(to), edge=None, weight=0.2, forward=False)), 0.1)


@pytest.mark.parametrize(("text", "title"), [("It was shot by him.", "Ed wood (film)"), ("Ed Wood's last film.", None)])
def test_a_rare_name_is_a_better_bridge_and_a_subject_the_best(text: str, title: str | None) -> None:
    seen = hydrated(
        record("memory", 1, "start"),
        record("entity", 10, "Ed Wood", declared=False),
        record("entity", 11, "Hollywood", declared=False),
        record("memory", 2, text, title=title),
        record("memory", 3, "Ed Woodward met him."),
        record("memory", 4, "m4"),
    )
    leads = {person(10): 3, person(11): 40}
    paths = [bridge(11, 4), bridge(10, 3), bridge(10, 2)]
    trails = follow(paths, [Seed(memory(1), 0.8)], [], seen, 12, leads)
    assert [trail.ref.id.int for trail in trails] == [2, 3, 4]
    assert [trail.score for trail in trails] == pytest.approx(
        [0.8 * SUBJECT / damping(3), 0.8 * MENTIONED / damping(3), 0.8 * MENTIONED / damping(40)]
    )
    (uncounted,) = follow([bridge(10, 3)], [Seed(memory(1), 0.8)], [], seen, 12)
    assert uncounted.score == pytest.approx(0.8 * MENTIONED / damping(HUB))


def test_what_the_question_names_is_no_bridge() -> None:
    seen = hydrated(record("memory", 1, "m"), record("memory", 3, "Seen with Ed Wood"), record("entity", 10, "Ed Wood"))
    near = Path(person(10), (step("MENTIONS", memory(3), edge=None, weight=0.2, forward=False),), 0.1)
    seeds = [Seed(memory(1), 0.8), Seed(person(10), 1.0)]
    for path, expected in (
        (bridge(10, 3), 0.8 * MENTIONED * KNOWN / damping(4)),
        (near, MENTIONED * KNOWN / damping(4)),
    ):
        (trail,) = [
            one for one in follow([path], seeds, [UUID(int=10)], seen, 12, {person(10): 4}) if one.ref.type == "memory"
        ]
        assert trail.score == pytest.approx(expected)


def test_what_calls_by_another_name_whom_the_question_names_is_found_where_few_do() -> None:
    near = Path(person(10), (step("MENTIONS", memory(3), edge=None, weight=0.2, forward=False),), 0.1)

    def score(text: str, mentions: int) -> float:
        seen = hydrated(record("memory", 3, text), record("entity", 10, "Ed Wood"))
        trails = follow([near], [Seed(person(10), 1.0)], [UUID(int=10)], seen, 12, {person(10): mentions})
        (trail,) = [one for one in trails if one.ref.type == "memory"]
        return trail.score

    assert score("Edward was there.", 4) == pytest.approx(CALLED / damping(4))
    assert score("Edward was there.", 4) > score("Edward was there.", 30) > score("ED WOOD was there.", 4)


def test_named_entities_are_found_only_if_declared() -> None:
    seen = hydrated(record("entity", 1, "John"), record("entity", 2, "Jane", declared=False))
    trails = follow([], [], [UUID(int=1), UUID(int=2), UUID(int=3)], seen, 12)
    assert [(trail.ref.id.int, trail.words) for trail in trails] == [(1, "query -> John")]


def test_the_best_of_several_trails_counts_and_the_limit_bounds_the_paths() -> None:
    seen = hydrated(*(record("memory", number, f"m{number}") for number in range(1, 5)), edges={"e": 0})
    weak = Path(memory(1), (step("ABOUT", memory(3), weight=0.2),), 0.9)
    strong = Path(memory(2), (step("ABOUT", memory(3), weight=0.9),), 0.1)
    other = Path(memory(1), (step("ABOUT", memory(4), weight=0.5),), 0.5)
    seeds = [Seed(memory(1), 0.9), Seed(memory(2), 0.9)]
    trails = follow([weak, other, strong], seeds, [], seen, 12)
    assert [trail.ref.id.int for trail in trails] == [3, 4]
    assert [trail.score for trail in trails] == pytest.approx([0.9 * TYPED * sqrt(0.9), 0.9 * TYPED * sqrt(0.5)])
    assert [trail.ref.id.int for trail in follow([weak, other, strong], seeds, [], seen, 1)] == [3]
    assert follow([weak, other, strong], seeds, [], seen, 0) == []


def test_names_are_one_short_line() -> None:
    assert shorten("a\n b\t c") == "a b c"
    assert len(shorten("x" * 500)) == NAME_CHARS
    assert shorten("x" * NAME_CHARS) == "x" * NAME_CHARS
