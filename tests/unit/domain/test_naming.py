"""Which entities a question names."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.names import canonical_name
from memory_os.domain.naming import GROUP_WORDS, MAX_GROUPS, NamedEntity, is_subject, name_groups, named_in


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


@pytest.mark.parametrize(
    ("name", "title", "text"),
    [
        ("Kalanithi Maran", "Kalanithi Maran", "He founded a group."),
        ("kalanithi maran", None, "Kalanithi Maran founded a group."),
        ("Inception", "Inception (film)", "It won."),
        ("Inception", "  ", "  Inception won."),
        ("Beatles", "The Beatles", "They sang."),
        ("The Beatles", None, "The Beatles sang."),
        ("Weiss", None, "Dr. Weiss called."),
        ("Blue Moon", None, "\u201cBlue Moon\u201d is a song."),
        ("ardal finch", "Ardal & Finch", "A firm."),
        ("Ann", None, "Ann's car is red."),
        ("\u5317\u4eac", None, "\u5317\u4eac\u5f88\u5927"),
    ],
)
def test_a_record_is_about_what_it_begins_with(name: str, title: str | None, text: str) -> None:
    assert is_subject(name, title, text)


@pytest.mark.parametrize(
    ("name", "title", "text"),
    [
        ("Maran", "Kalanithi Maran", "Maran founded a group."),
        ("Maran", None, "He met Maran."),
        ("Ann", None, "Anna called."),
        ("Ann", "Shift rules", "Ann wrote them."),
        ("Ann", None, ""),
        ("Ann", "", "The"),
        ("", "Ann", "Ann"),
        ("\u200b", None, "\u200b"),
    ],
)
def test_a_record_is_about_nothing_that_it_only_names(name: str, title: str | None, text: str) -> None:
    assert not is_subject(name, title, text)


def test_where_a_record_begins_is_read_and_not_all_of_it() -> None:
    assert not is_subject("Ann", None, "the " * 100_000 + "Ann")


@given(st.text(max_size=20), st.none() | st.text(max_size=20), st.text(max_size=20))
def test_any_record_is_about_what_it_has_as_its_title(name: str, title: str | None, text: str) -> None:
    assert is_subject(name, name, text) == bool(canonical_name(name) and name.strip())
    assert is_subject(name, title, text) == is_subject(canonical_name(name), title, text)
