"""What forms an Insight, and the words that are made of its members."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.cycles.insights import (
    LONGEST_SENTENCE,
    LONGEST_TITLE,
    RECURS,
    SENTENCES,
    Member,
    candidate_id,
    cut,
    first_sentence,
    forms_schema,
    overlap,
    recurs,
    says_nothing_new,
    seen_times,
    spans_domains,
    strengthened,
    summarise,
)
from memory_os.domain.cycles.profiles import differ, section_of
from memory_os.domain.labels import LABELS

NOW = datetime(2026, 11, 1, 2, tzinfo=UTC)
WEEK = timedelta(days=7)


def member(number: int, text: str, *names: str, confidence: float = 0.5, references: int = 0) -> Member:
    return Member(UUID(int=number), "world", text, None, confidence, references, frozenset(names))


@pytest.mark.parametrize(
    ("confidence", "references", "forms"),
    [(0.81, 10, True), (0.8, 10, False), (0.79, 10, False), (0.81, 9, False), (0.81, 11, True)],
)
def test_a_schema_forms_over_edges_that_are_sure_and_often_used(
    confidence: float, references: int, forms: bool
) -> None:
    assert forms_schema(confidence, references) is forms


def test_an_edge_was_strengthened_if_it_was_used_within_the_week() -> None:
    instant = timedelta(microseconds=1)
    assert strengthened(NOW - WEEK, 1, NOW)
    assert not strengthened(NOW - WEEK - instant, 1, NOW)
    assert not strengthened(NOW, 0, NOW)
    assert not strengthened(NOW + instant, 1, NOW)


def test_domains_are_layers_or_types_of_entities() -> None:
    assert spans_domains(["world", "identity"], [])
    assert spans_domains(["world", "world"], ["person", "system"])
    assert not spans_domains(["world", "world"], ["person", "person"])
    assert not spans_domains(["world"], ["person"])


def test_a_summary_has_the_strongest_sentences_and_what_is_shared() -> None:
    members = [
        member(1, "The pump leaks. It did so in May.", "pump", "hall 3", confidence=0.9, references=12),
        member(2, "Hall 3 is cold. Nobody minds.", "hall 3", confidence=0.6),
        member(3, "Seals wear out in the cold.", "pump", confidence=0.8, references=12),
        member(4, "The roof is new.", confidence=0.1),
    ]
    made = summarise(members)
    assert made.title == "hall 3, pump"
    assert made.text == "The pump leaks.\nSeals wear out in the cold.\nHall 3 is cold.\nShared: hall 3, pump."
    assert summarise(members[::-1]) == made


def test_a_summary_without_shared_entities_is_called_by_its_strongest_member() -> None:
    assert summarise([member(1, "The pump leaks."), member(2, "Bo sings.", confidence=0.9)]).title == "Bo sings."


members = st.lists(
    st.builds(
        Member,
        st.uuids(),
        st.sampled_from(["world", "identity"]),
        st.text(min_size=1, max_size=600).filter(str.strip),
        st.none(),
        st.floats(0, 1),
        st.integers(0, 100),
        st.frozensets(st.sampled_from(["pump", "Bo", "hall 3"])),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda one: one.id,
)


@given(members, st.randoms())
def test_a_summary_is_bounded_and_does_not_depend_on_the_order(found: list[Member], source: object) -> None:
    made = summarise(found)
    shuffled = list(found)
    source.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random
    assert summarise(shuffled) == made
    assert 0 < len(made.title) <= LONGEST_TITLE
    assert len(made.text) <= (SENTENCES + 1) * (LONGEST_SENTENCE + 1)


@given(st.text(min_size=1), st.integers(2, 100))
def test_what_is_cut_begins_the_text(text: str, longest: int) -> None:
    short = cut(text, longest)
    assert len(short) <= longest
    assert text.startswith(short.removesuffix("…")) or text == short


def test_a_first_sentence_is_one_line() -> None:
    assert first_sentence("The pump\t leaks.  It did.") == "The pump leaks."
    assert first_sentence("no end at all") == "no end at all"


def test_profiles_hold_what_is_evergreen_wanted_or_promised() -> None:
    held = {name: section_of(name) for name in LABELS if section_of(name)}
    assert held == {
        "Attribute": "evergreen",
        "Preference": "evergreen",
        "Belief": "evergreen",
        "Value": "evergreen",
        "Skill": "evergreen",
        "Goal": "goals",
        "Commitment": "commitments",
    }


def test_a_diff_tells_what_came_and_what_left() -> None:
    before, after = {"goals": ["a", "b"], "entities": ["x"]}, {"goals": ["b", "c"], "entities": ["x"]}
    assert differ(before, after) == {"goals": {"added": ["c"], "removed": ["a"]}}  # type: ignore[arg-type]
    assert differ({}, {}) == {}


def ids(*numbers: int) -> list[UUID]:
    return [UUID(int=number) for number in numbers]


@pytest.mark.parametrize(
    ("first", "second", "new"),
    [
        ((1, 2, 3), (1, 2, 3), False),
        ((1, 2, 3), (3, 2, 1), False),
        ((1, 2, 3), (1, 2, 3, 4, 5), False),  # 3 of 5
        ((1, 2, 3), (1, 2, 3, 4, 5, 6), True),  # 3 of 6: half, and no more
        ((1, 2, 3), (2, 3, 4), True),  # 2 of 4
        ((1, 2, 3, 4), (2, 3, 4, 5), False),  # 3 of 5
        ((1,), (1,), False),
        ((1,), (1, 2), True),
        ((1, 2, 3), (4, 5, 6), True),
    ],
)
def test_what_has_mostly_the_same_members_says_nothing_new(
    first: tuple[int, ...], second: tuple[int, ...], new: bool
) -> None:
    assert says_nothing_new(ids(*first), [ids(*second)]) is not new
    assert says_nothing_new(ids(*second), [ids(90), ids(*first)]) is not new


def test_where_nothing_is_known_all_is_new() -> None:
    assert not says_nothing_new(ids(1), [])
    assert overlap([], []) == 0.0


@pytest.mark.parametrize(
    ("merges", "sources", "seen"), [(0, 0, 1), (0, 1, 1), (4, 0, 5), (3, 0, 4), (2, 4, 4), (0, 5, 5), (4, 5, 5)]
)
def test_a_behavior_was_seen_as_often_as_it_was_said_or_borne_out(merges: int, sources: int, seen: int) -> None:
    assert seen_times(merges, sources) == seen
    assert recurs(merges, sources) is (seen >= RECURS)


def test_the_id_of_a_candidate_is_that_of_its_members() -> None:
    tenant, other = ids(8, 9)
    assert candidate_id(tenant, ids(1, 2)) == candidate_id(tenant, ids(2, 1))
    assert len({candidate_id(tenant, ids(1, 2)), candidate_id(tenant, ids(1, 3)), candidate_id(other, ids(1, 2))}) == 3
