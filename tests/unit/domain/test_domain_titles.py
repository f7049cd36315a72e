# ruff: noqa: RUF001 - letters of other scripts are the point

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.extraction import CONFIDENCE, MAX_MENTIONS, DeclaredNames, extract
from memory_os.domain.names import canonical_name
from memory_os.domain.titles import find_titled

exactly = settings(derandomize=True, database=None, deadline=None, max_examples=400)
NOTHING_DECLARED = DeclaredNames()
SAYING_NOTHING = "it was so."


def declare(*surfaces: str) -> DeclaredNames:
    return DeclaredNames((canonical_name(surface), surface) for surface in surfaces)


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("Kalanithi Maran", ["Kalanithi Maran"]),
        ("Inception", ["Inception"]),
        ("Inception (film)", ["Inception"]),
        ("Heat [1995, uncut]", ["Heat"]),
        ("(Inception)", ["Inception"]),
        ("Gone with the Wind", ["Gone with the Wind"]),
        ("Romeo and Juliet", ["Romeo and Juliet"]),
        ("Ludwig van Beethoven", ["Ludwig van Beethoven"]),
        ("Ardal & Finch", ["Ardal & Finch"]),
        ("The Beatles", ["Beatles"]),
        ("Dr. Jane Doe, PhD", ["Jane Doe"]),
        ("St. Louis", ["St. Louis"]),
        ("J. K. Rowling", ["J. K. Rowling"]),
        ("Who Framed Roger Rabbit?", ["Who Framed Roger Rabbit"]),
        ("Finding Nemo", ["Finding Nemo"]),
        ("Schindler's List", ["Schindler's List"]),
        ("Ann's", ["Ann"]),
        ("Star Wars: The Last Jedi", ["Star Wars", "Last Jedi"]),
        ("Springfield, Illinois", ["Springfield", "Illinois"]),
        ("Northwind \u2014 Ledger", ["Northwind", "Ledger"]),
        ("iPhone 15", ["iPhone 15"]),
        ("Blade Runner 2049", ["Blade Runner 2049"]),
        ("C++", ["C++"]),
        ("A\u030angstro\u0308m", ["A\u030angstro\u0308m"]),
        ("Мастер и Маргарита", ["Мастер и Маргарита"]),
    ],
)
def test_titles_that_are_names(title: str, found: list[str]) -> None:
    assert [title[phrase.start : phrase.end] for phrase in find_titled(title)] == found


@pytest.mark.parametrize(
    "title",
    [
        "Kitchen shift rules",
        "The Ledger migration",
        "inception",
        "van der Berg",
        "Notes of the",
        "Stop. Go Home",
        "Notes",
        "Thank You",
        "Monday",
        "January 2024",
        "May",
        "Mr.",
        "The",
        "A",
        "CEO",
        "MEETING NOTES",
        "2049",
        "北京大学",
        "See https://Example.com",
        "Foo_Bar",
        "Docs/Setup",
        "Aa Bb Cc Dd Ee Ff Gg Hh Ii",
        "Ab" * 61,
        "\u2026",
        "-",
        " ",
        "",
    ],
)
def test_titles_that_are_no_names(title: str) -> None:
    assert find_titled(title) == []


def test_a_name_that_only_the_title_has_is_a_mention_without_a_place_in_the_text() -> None:
    (maran,) = extract(SAYING_NOTHING, NOTHING_DECLARED, "Kalanithi Maran")
    assert (maran.name, maran.key, maran.kind) == ("Kalanithi Maran", "kalanithi maran", "capitalised")
    assert (maran.occurrences, maran.spans, maran.confidence) == (1, (), CONFIDENCE["phrase"])
    (single,) = extract(SAYING_NOTHING, NOTHING_DECLARED, "Inception (film)")
    assert (single.name, single.confidence) == ("Inception", CONFIDENCE["word"])
    (known,) = extract(SAYING_NOTHING, declare("Inception"), "Inception")
    assert (known.kind, known.confidence, known.occurrences) == ("declared", CONFIDENCE["declared"], 1)


def test_title_and_text_are_counted_together_and_places_are_those_of_the_text() -> None:
    (maran,) = extract("They met Kalanithi Maran.", NOTHING_DECLARED, "  Letter to Kalanithi Maran today ")
    assert (maran.occurrences, maran.spans) == (2, ((9, 24),))
    (john,) = extract("John called.", NOTHING_DECLARED, "what I told John")
    assert (john.occurrences, john.spans) == (2, ((0, 4),))


@pytest.mark.parametrize("title", [None, "", " ", "kitchen shift rules", "Kitchen shift rules", "MEETING NOTES"])
@pytest.mark.parametrize("text", ["John called. Ann met Ben in Rome.", "He said hello.", '"Blue Moon" is a song.'])
def test_a_title_that_names_nobody_changes_nothing(text: str, title: str | None) -> None:
    assert extract(text, NOTHING_DECLARED, title) == extract(text, NOTHING_DECLARED)


@pytest.mark.parametrize(
    ("title", "text", "found"),
    [
        ("Inception", "Inception won.", [("Inception", 1, ((0, 9),))]),
        ("Inception (film)", "  Inception is a film.", [("Inception", 1, ((2, 11),))]),
        ("Inception", "Inception won. Then Inception was lost.", [("Inception", 2, ((0, 9), (20, 29)))]),
        ("Ann Lee, Ann Lee", "Ann Lee, Ann Lee, Ann Lee", [("Ann Lee", 3, ((0, 7), (9, 16), (18, 25)))]),
        ("Ann Lee", "Ann Lee\n\nAnn Lee\n\nAnn Lee", [("Ann Lee", 3, ((0, 7), (9, 16), (18, 25)))]),
        ("Ann Lee", "Ann Lee", [("Ann Lee", 1, ((0, 7),))]),
        ("We saw Ann Lee\u2026", "We saw Ann Lee at home.", [("Ann Lee", 1, ((7, 14),))]),
        ("Ada and Byron", "Ada and Byron is a film.", [("Ada and Byron", 1, ()), ("Byron", 1, ((8, 13),))]),
        ("Ann", "Ann Lee called.", [("Ann", 1, ()), ("Ann Lee", 1, ((0, 7),))]),
        ("Ann", "Anna called.", [("Ann", 1, ())]),
    ],
)
def test_what_the_text_begins_with_again_is_counted_once(
    title: str, text: str, found: list[tuple[str, int, tuple[tuple[int, int], ...]]]
) -> None:
    mentions = extract(text, NOTHING_DECLARED, title)
    assert [(mention.name, mention.occurrences, mention.spans) for mention in mentions] == found


def test_no_name_goes_from_the_title_into_the_text() -> None:
    (first, *_) = extract("Lee met Bob Stone.", declare("Ann Lee"), "Ann")
    assert (first.key, first.spans) == ("ann", ())
    assert extract("moon\u201d is a song", NOTHING_DECLARED, "the \u201cblue") == ()


def test_names_in_a_title_are_found_beside_the_whole_of_it() -> None:
    found = extract(SAYING_NOTHING, declare("John"), "Lunch with John Smith and John")
    assert [(mention.name, mention.kind, mention.occurrences) for mention in found] == [
        ("Lunch with John Smith and John", "capitalised", 1),
        ("John", "declared", 2),
        ("John Smith", "capitalised", 1),
    ]
    assert [mention.name for mention in extract(SAYING_NOTHING, declare("John"), "Meeting John")] == ["John"]


def test_of_too_many_names_those_of_the_title_are_the_earliest() -> None:
    many = extract("; ".join(f"the Firm{number}" for number in range(100)), NOTHING_DECLARED, "Firma7")
    assert len(many) == MAX_MENTIONS
    assert (many[0].name, many[1].name) == ("Firma7", "Firm0")


pieces = st.text(
    st.sampled_from("Abc北1. ,'\"’“”()&:-\n\u200b\u0301") | st.characters(exclude_categories=["Cs"]), max_size=40
)


@exactly
@given(pieces, pieces)
def test_every_mention_is_what_its_spans_say_with_a_title_too(title: str, text: str) -> None:
    declared = declare("Ab", "北", "c c", "!!")
    found = extract(text, declared, title)
    assert len({mention.key for mention in found}) == len(found)
    for mention in found:
        assert mention.occurrences >= max(1, len(mention.spans))
        assert list(mention.spans) == sorted(set(mention.spans))
        for start, end in mention.spans:
            assert 0 <= start < end <= len(text)
            assert mention.kind == "declared" or canonical_name(text[start:end]) == mention.key
    alone = {mention.key: mention for mention in extract(text, declared) if mention.kind != "capitalised"}
    assert alone.keys() <= {mention.key for mention in found}


@pytest.mark.parametrize("piece", ["A", "Abc ", "A. ", "A: ", "(", ") ", "A of ", "' ", "A'", "\u0301", "1 "])
def test_hostile_titles_take_linear_time(piece: str) -> None:
    title = piece * (100_000 // len(piece)) + "A)"
    started = process_time()
    assert len(extract(title, declare("Ab1"), title)) <= MAX_MENTIONS
    assert process_time() - started < 10
