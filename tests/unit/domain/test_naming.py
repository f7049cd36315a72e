"""Which entities a question names."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.names import canonical_name
from memory_os.domain.naming import GROUP_WORDS, MAX_GROUPS, NamedEntity, name_groups, named_in


def entity(number: int, surface: str) -> NamedEntity:
    return NamedEntity(UUID(int=number), canonical_name(surface), surface)


def found(query: str, *entities: NamedEntity) -> list[int]:
    wanted = set(name_groups(query))
    return [ident.int for ident in named_in(query, [one for one in entities if one.canonical_name in wanted])]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("what do i know about john?", "John"),
        ("What about JOHN'S car", "John"),
        ("who is at northwind freight gmbh & co", "Northwind Freight GmbH & Co"),
        ("status of PROJ-1234, please", "proj 1234"),
        ("is C++ faster", "C++"),
        ("張三在哪裡工作", "張三"),
        ("東京タワーはどこ", "東京タワー"),
        ("пётр где", "Пётр"),
        ("John Smith vs. the world", "john smith"),
    ],
)
def test_a_name_is_found_however_it_is_written(query: str, name: str) -> None:
    assert found(query, entity(1, name)) == [1]


def test_a_longer_name_hides_those_within_it() -> None:
    entities = (entity(1, "John"), entity(2, "John Smith"), entity(3, "Smith"))
    assert found("where is John Smith?", *entities) == [2]
    assert found("where is John, Smith?", *entities) in ([2], [1, 3])
    assert found("John met John Smith", *entities) == [1, 2]


def test_two_of_one_name_are_both_meant() -> None:
    assert found("ask Alex Kim", entity(2, "Alex Kim"), entity(1, "Alex Kim")) == [1, 2]


def test_a_number_is_not_cut_out_of_a_longer_one() -> None:
    assert found("is Room 101 free", entity(1, "Room 10")) == []
    assert found("it weighs 10.5 kg", entity(1, "10")) == []


def test_a_common_word_is_a_name_only_with_its_capital() -> None:
    assert found("may i come", entity(1, "May")) == []
    assert found("ask May about it", entity(1, "May")) == [1]


@given(st.text(max_size=4_000))
def test_any_text_has_a_bounded_number_of_groups(query: str) -> None:
    groups = name_groups(query)
    assert len(groups) <= MAX_GROUPS
    assert len(set(groups)) == len(groups)


@given(st.lists(st.sampled_from(["John", "works", "at", "Acme", "Co", "with", "Ann-Lee"]), min_size=1, max_size=12))
def test_every_run_of_words_is_looked_up(words: list[str]) -> None:
    query = " ".join(words)
    atoms = canonical_name(query).split(" ")
    groups = set(name_groups(query))
    for start in range(len(atoms)):
        for end in range(start + 1, min(start + GROUP_WORDS, len(atoms)) + 1):
            assert " ".join(atoms[start:end]) in groups
