# ruff: noqa: RUF001 - letters of other scripts are the point

from __future__ import annotations

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.declared_names import DeclaredNames
from memory_os.domain.names import canonical_name

exactly = settings(derandomize=True, database=None, deadline=None, max_examples=300)
words = st.text(st.characters(categories=["Lu", "Ll", "Lo", "Nd"]), min_size=1, max_size=8)


def declare(*surfaces: str) -> DeclaredNames:
    return DeclaredNames((canonical_name(surface), surface) for surface in surfaces)


def find(text: str, *surfaces: str) -> list[str]:
    return [text[match.start : match.end] for match in declare(*surfaces).find(text)]


@pytest.mark.parametrize(
    ("text", "surfaces", "found"),
    [
        ("met ARDAL & FINCH's lawyer", ["Ardal & Finch"], ["ARDAL & FINCH"]),
        ("met Ardal &\nFinch", ["Ardal & Finch"], ["Ardal &\nFinch"]),
        ("ardal-finch and ardal_finch", ["Ardal & Finch"], ["ardal-finch", "ardal_finch"]),
        ("Ann, Annual, Ann's", ["Ann"], ["Ann", "Ann"]),
        (
            "A\u030angstro\u0308m ÅNGSTRÖM Ａ\u030angström",
            ["Ångström"],
            ["A\u030angstro\u0308m", "ÅNGSTRÖM", "Ａ\u030angström"],
        ),
        ("C++ and C# and C.", ["C++", "C#", "C"], ["C++", "C#", "C"]),
        ("the 🍕 club", ["🍕 Club"], ["🍕 club"]),
        ("saw !!! live, wow!!!", ["!!!"], ["!!!"]),
        ("O\u00b4Brien, o brien", ["O'Brien"], ["O\u00b4Brien", "o brien"]),
        ("J. Smith and St. Louis", ["J. Smith", "St Louis"], ["J. Smith", "St. Louis"]),
    ],
)
def test_a_surface_is_found_however_it_is_written(text: str, surfaces: list[str], found: list[str]) -> None:
    assert find(text, *surfaces) == found


@pytest.mark.parametrize(
    ("text", "surfaces", "found"),
    [
        ("어제 김민수가 왔다. 김 민수는", ["김민수", "민수"], ["김민수", "김 민수"]),
        ("민수는 남민수를", ["민수"], ["민수"]),
        ("我在北京大学读书, 去北 京", ["北京大学", "北京"], ["北京大学", "北 京"]),
        ("北。京", ["北京"], []),
        ("ジョン・スミスさんとｼﾞｮﾝｽﾐｽ", ["ジョンスミス"], ["ジョン・スミス", "ｼﾞｮﾝｽﾐｽ"]),
        ("アンケートとアンさん", ["アン"], ["アン"]),
        ("ウイスキーとスキー場", ["スキー"], ["スキー"]),
        ("คุณสมชายไปตลาด", ["สมชาย"], ["สมชาย"]),
        ("राम ने कहा", ["राम"], ["राम"]),
        ("ومحمد ذهب", ["محمد"], ["محمد"]),
        ("נתתי ליוסי ספר", ["יוסי"], ["יוסי"]),
        ("桃李 (李)", ["李"], ["李"]),
        ("встретил МОСКВА-банк", ["Москва"], ["МОСКВА"]),
    ],
)
def test_names_are_found_in_any_script(text: str, surfaces: list[str], found: list[str]) -> None:
    assert find(text, *surfaces) == found


@pytest.mark.parametrize(
    ("text", "surface"),
    [
        ("Room 102", "Room 101"),
        ("Version 1.2", "Version 1"),
        ("2023/2024", "2024"),
        ("UA1234", "UA123"),
        ("Room 10 1", "Room 101"),
        ("It is new. York is old", "New York"),
        ("new\n\nyork", "New York"),
        ("new" + " " * 50 + "york", "New York"),
        ("10²", "102"),
    ],
)
def test_what_is_another_name_is_not_found(text: str, surface: str) -> None:
    assert find(text, surface) == []


def test_the_longer_name_wins_wherever_they_overlap() -> None:
    assert find("New York University", "New York", "New York University") == ["New York University"]
    assert find("New York University Hospital", "New York", "York University Hospital") == ["York University Hospital"]
    assert find("New York, New York University", "New York", "New York University") == [
        "New York",
        "New York University",
    ]


def test_a_name_that_is_a_common_word_needs_its_capital() -> None:
    assert find("will may be Will in may, WILL", "Will", "May") == ["Will", "WILL"]
    assert find("the who and The Who", "The Who") == ["the who", "The Who"]
    assert find("we will", "will") == ["will"]


def test_an_alias_answers_its_entitys_key() -> None:
    names = DeclaredNames([("ardal finch", "Ardal & Finch"), ("ardal finch", "A&F"), ("ardal finch", "the firm")])
    assert [match.key for match in names.find("A&F is the firm")] == ["ardal finch", "ardal finch"]
    assert len(names) == 3


def test_an_alias_of_two_entities_is_not_guessed() -> None:
    names = DeclaredNames([("alex kim", "Alex"), ("alex smith", "Alex"), ("alex kim", "Alex Kim")])
    assert [match.key for match in names.find("Alex met Alex Kim")] == ["alex", "alex kim"]
    owned = DeclaredNames([("alex", "Alex"), ("alex smith", "alex")])
    assert [match.key for match in owned.find("Alex")] == ["alex"]


def test_nothing_is_found_without_names_or_text() -> None:
    assert DeclaredNames().find("Ann") == []
    assert DeclaredNames([("", ""), ("x", "   ")]).find("Ann") == []
    assert declare("Ann").find("") == []


@exactly
@given(st.lists(words, min_size=1, max_size=4).map(" ".join), st.sampled_from(["", "saw ", "看 ", "(", "\n"]))
def test_a_declared_name_between_spaces_is_always_found(name: str, before: str) -> None:
    text = f"{before}{name} !"
    matches = declare(name).find(text)
    assert [(text[match.start : match.end], match.key) for match in matches] == [(name, canonical_name(name))]


@exactly
@given(
    st.lists(st.lists(st.sampled_from("ab01北가"), min_size=1, max_size=3).map(" ".join), max_size=5),
    st.text("ab01北가 .,"),
)
def test_matches_never_overlap_and_are_what_they_say(surfaces: list[str], text: str) -> None:
    matches = declare(*surfaces).find(text)
    assert all(left.end <= right.start for left, right in pairwise(matches))
    for match in matches:
        # Spaces that part letters of one script belong to no canonical form (see names), so compare without any.
        assert canonical_name(text[match.start : match.end]).replace(" ", "") == match.key.replace(" ", "")


@pytest.mark.parametrize("piece", ["a ", "北", "가", "\u200b", "A", "\u0301", '"', ".", "\u1100\u1161", "1.1", "ב "])
def test_hostile_texts_take_linear_time(piece: str) -> None:
    names = DeclaredNames([*(("x", " ".join("a" * count)) for count in range(1, 20)), ("y", "北京"), ("z", "1")])
    started = process_time()
    names.find(piece * (100_000 // len(piece)))
    assert process_time() - started < 10
