# ruff: noqa: RUF001 - letters that look alike are the point

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain import names
from memory_os.domain.names import CANONICAL_NAME_SQL, canonical_name

exactly = settings(derandomize=True, database=None, deadline=None, max_examples=300)
texts = st.text(st.characters(exclude_categories=["Cs"]))

SAME = {
    "case": ["Ardal & Finch", "ARDAL & FINCH", "ardal-finch", "  Ardal \t&\nFinch "],
    "Korean spacing": ["김민수", "김 민수", "김  민수", unicodedata.normalize("NFD", "김민수")],
    "Japanese spacing, dot and width": ["ジョンスミス", "ジョン スミス", "ジョン・スミス", "ｼﾞｮﾝ ｽﾐｽ"],
    "Chinese spacing": ["北京大学", "北京 大学", "「北京大学」"],
    "Thai spacing": ["ที่นี่", "ที่ นี่"],
    "Cyrillic": ["Москва", "МОСКВА", "москва"],
    "Greek final sigma": ["Οδυσσεύς", "ΟΔΥΣΣΕΎΣ", "Οδυσσεύσ"],
    "German sharp s": ["Straße", "STRASSE", "STRAẞE", "strasse"],
    "Turkish dotted I": ["İstanbul", "istanbul", "ISTANBUL"],
    "NFC and NFD": ["Ångström", "A\u030angstro\u0308m", "\u212bngström"],
    "ligature": ["ﬁnch", "finch", "FINCH"],
    "full width": ["Ｆｉｎｃｈ　２", "Finch 2"],
    "zero width": ["Finch", "Fi\u200dnch", "Fi\u200bnch", "\ufeffFinch", "Fi\u00adnch", "Fin\u2060ch"],
    "apostrophes": ["O'Brien", "O\u2019Brien", "O\u02bcBrien", "O\u00b4Brien", "O`Brien", "O Brien"],
    "marks in another order": ["q\u0307\u0323", "q\u0323\u0307"],
    "trade mark": ["Finch", "Finch™", "Finch®"],
    "emoji style": ["❤ Club", "❤\ufe0f Club"],
    "circled digit": ["Team ①", "Team 1"],
    "joints": ["payment_service", "payment-service", "payment service", "payment.service", "Payment/Service"],
}

DIFFERENT = [
    ("Room 101", "Room 102"),
    ("Room 101", "Room 10 1"),
    ("UA123", "UA124"),
    ("ASR1603", "ASR1605"),
    ("2023 Tax Return", "2024 Tax Return"),
    ("2022/2023 Tax Return", "2023/2024 Tax Return"),
    ("C", "C++"),
    ("C++", "C#"),
    ("A", "A+"),
    ("10²", "102"),
    ("²10", "210"),
    ("1½", "11/2"),
    ("Ann Bell", "Annbell"),
    ("방 10 1", "방 101"),
    ("Resume", "Résumé"),
    ("ı", "i"),
    ("???", "!!!"),
    ("$5", "5"),
    ("Team 1", "Team 11"),
]


@pytest.mark.parametrize("spellings", SAME.values(), ids=SAME)
def test_spellings_of_one_name_share_their_canonical_form(spellings: list[str]) -> None:
    forms = {canonical_name(spelling) for spelling in spellings}
    assert len(forms) == 1
    assert forms != {""}


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_names_stay_different(one: str, other: str) -> None:
    assert canonical_name(one) != canonical_name(other)


def test_forms_that_others_rely_on() -> None:
    assert canonical_name("Ardal & Finch") == "ardal finch"
    assert canonical_name("Ledger migration") == "ledger migration"
    assert canonical_name("C++") == "c++"
    assert canonical_name("Room 101") == "room 101"
    assert canonical_name("김 민수 Kim") == "김민수 kim"


def test_a_name_of_punctuation_keeps_it() -> None:
    assert canonical_name(" ?!  ? ") == "?! ?"
    assert canonical_name("\u2026") == "..."
    assert canonical_name("--") == "--"


@pytest.mark.parametrize("nothing", ["", "   ", "\u200b\u200d", "\x00", "\u3000\u00a0", "™"])
def test_only_what_shows_nothing_is_empty(nothing: str) -> None:
    assert canonical_name(nothing) == ""


@exactly
@given(texts)
def test_idempotent_trimmed_and_single_spaced(text: str) -> None:
    name = canonical_name(text)
    assert canonical_name(name) == name
    assert name == name.strip(" ")
    assert "  " not in name


@exactly
@given(st.text(st.characters(exclude_categories=["Cs", "Cn"])))
def test_canonically_equivalent_texts_are_one_name(text: str) -> None:
    assert canonical_name(unicodedata.normalize("NFC", text)) == canonical_name(unicodedata.normalize("NFD", text))


@exactly
@given(st.text(st.characters(max_codepoint=0x7F)))
def test_the_short_way_for_ascii_is_the_long_way(text: str) -> None:
    assert canonical_name(text) == names._canonical(text)


@exactly
@given(texts)
def test_digits_are_never_joined(text: str) -> None:
    assert canonical_name(f"{text} 1 0") != canonical_name(f"{text} 10")


def test_what_unicode_assigned_later_keeps_its_form() -> None:
    # U+10D50 is a capital since Unicode 16: a database of 14 can't fold it, so neither does, and ASCII alone is folded.
    assert canonical_name("\U00010d50 ANN \u00c4") == "\U00010d50 ann \u00c4"


def test_the_sql_can_stand_in_any_statement() -> None:
    assert "%" not in CANONICAL_NAME_SQL
    assert CANONICAL_NAME_SQL.isascii()
    assert CANONICAL_NAME_SQL.count("$1") == 1
    assert "\x00" not in CANONICAL_NAME_SQL
