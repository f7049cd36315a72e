# ruff: noqa: RUF001 - letters of other scripts are the point

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.extraction import (
    CONFIDENCE,
    EXTRACTOR,
    EXTRACTOR_VERSION,
    MAX_MENTIONS,
    DeclaredNames,
    ExtractedMention,
    extract,
)
from memory_os.domain.names import canonical_name

exactly = settings(derandomize=True, database=None, deadline=None, max_examples=400)
NOTHING_DECLARED = DeclaredNames()


def declare(*surfaces: str) -> DeclaredNames:
    return DeclaredNames((canonical_name(surface), surface) for surface in surfaces)


def names(text: str, *declared: str) -> list[str]:
    return [mention.name for mention in extract(text, declare(*declared))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ann works at Ardal & Finch in Berlin.", ["Ardal & Finch", "Berlin"]),
        ("the wine is John's, not Ann\u2019s", ["John", "Ann"]),
        ("I make Detroit-style pizza from scratch", ["Detroit"]),
        ("the DGIA report", ["DGIA"]),
        ("on UA123 and UA124", ["UA123", "UA124"]),
        ("Room 101 is free, not Room 102", ["Room 101", "Room 102"]),
        ("the 2023/2024 Tax Return", ["2023/2024 Tax Return"]),
        ("Bank of America and Lord of the Rings", ["Bank of America", "Lord of the Rings"]),
        ("Ludwig van Beethoven met Marie de la Cruz", ["Ludwig van Beethoven", "Marie de la Cruz"]),
        ("told Ann and Ben", ["Ann", "Ben"]),
        (
            "Dr. Smith met J. K. Rowling in St. Louis. Then Mr. Jones left.",
            ["Smith", "J. K. Rowling", "St. Louis", "Jones"],
        ),
        ("GitHub, iPhone, PostgreSQL 18 and GPT-4", ["GitHub", "iPhone", "PostgreSQL 18", "GPT-4"]),
        ("we use C++ and C#", ["C++", "C#"]),
        ("O'Brien, L\u2019Oréal and Müller-Lüdenscheidt", ["O'Brien", "L\u2019Oréal", "Müller-Lüdenscheidt"]),
        ("Stratford-upon-Avon, Jean-Luc, Coca-Cola", ["Stratford-upon-Avon", "Jean-Luc", "Coca-Cola"]),
        ("Plan B and Vitamin C", ["Plan B", "Vitamin C"]),
        ("CEO Jane Doe met John Smith MD", ["Jane Doe", "John Smith"]),
        ("the lead is Northwind Freight Inc. Then Acme Corp. called", ["Northwind Freight Inc", "Acme Corp"]),
        ("talk to U.S. Steel, AT&T and Node.js", ["U.S. Steel", "AT&T", "Node.js"]),
        ("Анна поехала в Москву с Иваном Петровичем", ["Москву", "Иваном Петровичем"]),
        ("Η Μαρία ζει στην Αθήνα", ["Μαρία", "Αθήνα"]),
        ("lives near A\u030angstro\u0308m", ["A\u030angstro\u0308m"]),
        ("我用GitHub很好", ["GitHub"]),
        ("John은 서울에 갔다", ["John"]),
        ("Attendees: Alice, Bob", ["Alice", "Bob"]),
    ],
)
def test_names_by_their_capitals(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "Coffee is great.",
        "Weather was fine. Everyone left! Nobody stayed? Rain fell…",
        "- Call tomorrow\n- Buy milk\n2) Pay rent",
        "I think we should. I'm not. We've met. Don't tell.",
        "On Monday, in March, every Sunday",
        "Then However Yesterday",
        "THIS IS LOUD TEXT",
        "it is the T-shirt with the X-ray",
        "see https://Example.com/Foo and bob@Acme.com or /usr/Local/Bin",
        "set MAX_RETRIES and getUserName in std::Vector",
        "OK FYI the CEO",
        "A b. B c.",
        "",
        "   ",
        "???",
        "12345 67",
        '"',
    ],
)
def test_what_is_no_name(text: str) -> None:
    assert names(text) == []


def test_a_sentences_first_word_is_a_name_if_it_recurs_inside_one_or_is_declared() -> None:
    assert names("John called.") == []
    (john,) = extract("John called. I told John.", NOTHING_DECLARED)
    assert (john.occurrences, john.spans) == (2, ((0, 4), (20, 24)))
    assert names("John called. I told John Smith.") == ["John", "John Smith"]
    assert names("John called.", "John") == ["John"]
    assert names("Coffee is great. I love coffee.") == []


def test_amounts_and_dates_belong_to_no_name() -> None:
    assert names("gave John 5 apples and Ann 3 kg") == ["John", "Ann"]
    assert names("so in 2023 Anna moved") == ["Anna"]
    assert names("my 2023 Tax Return") == ["2023 Tax Return"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('she reads "blue whale" daily', ["blue whale"]),
        ("sie liest „Der Prozess“ und »Das Schloss«", ["Der Prozess", "Das Schloss"]),
        ("il lit «Le Petit Prince»", ["Le Petit Prince"]),
        (
            "the \u201cBlue Moon\u201d, the \u2018Red Moon\u2019 and the 'Green Moon'",
            ["Blue Moon", "Red Moon", "Green Moon"],
        ),
        ("我用「北京大学」和《红楼梦》，还有『西游记』", ["北京大学", "红楼梦", "西游记"]),
        ("in the dogs' yard and the cats' house", []),
        ('5" pipe and 6" pipe', []),
        ('{"name": "widget", "size": 3}', ["widget"]),
        ('he said "blue whale"', []),
        ('they "went home because it was late and they were very tired"', []),
        ('a sign: "Do not enter. Danger!"', []),
        ('"I am here"', []),
        ('the word "the"', []),
        ("他说「今天天气很好，我们一起去公园散步然后回家吃饭，好不好呢」", []),
    ],
)
def test_quoted_phrases(text: str, found: list[str]) -> None:
    assert [mention.name for mention in extract(text, NOTHING_DECLARED) if mention.kind == "quoted"] == found


def test_declared_names_always_match_in_any_script() -> None:
    assert names("昨天李雷去了北京", "李雷", "北京") == ["李雷", "北京"]
    assert names("어제 김 민수가 왔다", "김민수") == ["김 민수"]
    assert names("we met ardal & finch", "Ardal & Finch") == ["ardal & finch"]


def test_a_declared_name_wins_over_what_overlaps_it() -> None:
    (room,) = extract('the "Room 101" party', declare("Room 101"))
    assert (room.kind, room.confidence) == ("declared", 1.0)
    assert names("Meeting John tomorrow", "John") == ["John"]
    assert names("the Room 101 party", "Room 101") == ["Room 101"]


def test_a_longer_phrase_around_a_declared_name_is_a_name_of_its_own() -> None:
    found = extract("ask John Smith or John", declare("John"))
    assert [(mention.name, mention.kind, mention.occurrences) for mention in found] == [
        ("John", "declared", 2),
        ("John Smith", "capitalised", 1),
    ]


def test_mentions_are_merged_by_key_with_the_best_evidence() -> None:
    (club,) = extract('"Detroit Pizza Club" meets; the Detroit  Pizza Club, detroit pizza club', NOTHING_DECLARED)[:1]
    assert club == ExtractedMention(
        name="Detroit Pizza Club",
        key="detroit pizza club",
        confidence=CONFIDENCE["quoted"],
        occurrences=1,
        spans=((1, 19),),
        kind="quoted",
    )
    (alias,) = extract("A&F, Ardal & Finch", DeclaredNames([("ardal finch", "A&F"), ("ardal finch", "Ardal & Finch")]))
    assert (alias.key, alias.name, alias.occurrences) == ("ardal finch", "A&F", 2)


def test_confidence_follows_the_evidence() -> None:
    assert {
        mention.name: mention.confidence for mention in extract('in "x ray", New York, DGIA, Rome', declare("Rome"))
    } == {
        "x ray": CONFIDENCE["quoted"],
        "New York": CONFIDENCE["phrase"],
        "DGIA": CONFIDENCE["form"],
        "Rome": CONFIDENCE["declared"],
    }
    assert extract("in Rome", NOTHING_DECLARED)[0].confidence == CONFIDENCE["word"]
    assert (EXTRACTOR, EXTRACTOR_VERSION) == ("heuristic", 2)


def test_no_name_is_longer_than_120_characters_and_no_text_has_more_than_64() -> None:
    assert names(f"the {'Ab' * 60}") == ["Ab" * 60]
    assert names(f"the {'Ab' * 60}c") == []
    many = extract("; ".join(f"the Firm{number}" for number in range(100)) + "; see zeta", declare("zeta"))
    assert len(many) == MAX_MENTIONS
    assert many[-1].name == "zeta"
    assert many[0].name == "Firm0"


@exactly
@given(
    st.text(
        st.sampled_from("AbcĐđ北가ア1. ,'\"’“”「」&-\n\u200b\u0301") | st.characters(exclude_categories=["Cs"]),
        max_size=80,
    )
)
def test_every_mention_is_what_its_spans_say(text: str) -> None:
    found = extract(text, declare("Ab", "北", "c c", "!!"))
    assert len({mention.key for mention in found}) == len(found)
    assert list(found) == sorted(found, key=lambda mention: mention.spans[0])
    for mention in found:
        assert mention.key
        assert mention.occurrences == len(mention.spans) >= 1
        assert list(mention.spans) == sorted(set(mention.spans))
        start, end = mention.spans[0]
        assert 0 <= start < end <= len(text)
        if mention.kind != "declared":
            assert all(canonical_name(text[left:right]) == mention.key for left, right in mention.spans)
            assert len(mention.name) <= 120
    assert found == extract(text, declare("!!", "c c", "北", "Ab"))


HOSTILE = {
    "capitals": "A",
    "names": "Abc ",
    "acronyms": "ABC ",
    "quotes": '"',
    "open quotes": "“a",
    "single quotes": "'a ",
    "curly": "‘a ",
    "zero width": "A\u200b",
    "spaces": " ",
    "dots": "A.",
    "hyphens": "A-a",
    "apostrophes": "A'",
    "bridges": "A of ",
    "numbers": "A 1 ",
    "years": "2023 A ",
    "addresses": "@A ",
    "slashes": "/A",
    "lines": "A\n",
    "accents": "A\u0301\u0301\u0301",
    "bullets": "- ",
    "brackets": "((((A",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    text = piece * (100_000 // len(piece)) + "A"
    started = process_time()
    assert len(extract(text, declare("Ab1", "北京"))) <= MAX_MENTIONS
    assert process_time() - started < 10
