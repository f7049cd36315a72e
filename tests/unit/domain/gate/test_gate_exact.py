# ruff: noqa: RUF001 - letters that look alike are the point

from __future__ import annotations

import unicodedata
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.gate.exact import loud_form, normal_form, quiet_form

exactly = settings(derandomize=True, database=None, deadline=None, max_examples=300)

SAME = {
    "white space": ["Call Ada  first", " call\tAda\nfirst ", "CALL ADA FIRST", "Call\u00a0Ada\u2003first"],
    "full stop": ["The key is at the desk.", "The key is at the desk", "the key is at the desk ."],
    "zero width and soft hyphen": ["pump room", "pu\u200bmp ro\u00adom", "\ufeffpump \u2060room", "pump\u200e room"],
    "full width": ["Ｇａｔｅ　１２！", "Gate 12!"],
    "half-width kana": ["ガレージ", "ｶﾞﾚｰｼﾞ"],
    "quotes and dashes": ["“a” – it’s", '"a" - it\'s', "«a» — it‘s"],
    "Chinese punctuation": ["先付款，再发货。", "先付款,再发货", "先付款, 再发货."],
    "composition": ["Ångström", "A\u030angstro\u0308m", "\u212bngström"],
    "final sigma": ["Οδυσσεύς", "ΟΔΥΣΣΕΎΣ"],
    "Turkish dotted I": ["İzmir", "izmir"],
    "ligature": ["ﬁle", "file"],
    "circled number": ["Valve ①: open", "Valve 1: open"],
    "circled number beside Han": ["手順①", "手順1"],
    "square letters": ["5 ㎏", "5 kg"],
    "Arabic forms": ["ﻼ", "لا"],
    "Arabic stretch": ["سلـــام", "سلام"],
    "emoji style": ["❤ it", "❤\ufe0f it"],
    "joiner in Latin": ["de\u200dsk", "desk"],
}

DIFFERENT = [
    ("10² bolts", "102 bolts"),
    ("x₂", "x2"),
    ("½ cup", "12 cup"),
    ("½ cup", "1/2 cup"),
    ("1①", "11"),
    ("Room 10 1", "Room 101"),
    ("3.5 bar", "35 bar"),
    ("is it paid", "is it paid?"),
    ("Maße", "Masse"),
    ("क्‍ष", "क्ष"),
    ("می\u200cخواهم", "میخواهم"),
    ("👨\u200d👩", "👨👩"),
    ("résumé", "resume"),
    ("C", "C#"),
    ("", "a"),
    ("渡邉", "渡辺"),
]


@pytest.mark.parametrize("writings", SAME.values(), ids=SAME)
def test_other_writings_share_a_key(writings: list[str]) -> None:
    assert len({normal_form(writing) for writing in writings}) == 1


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_in_meaning_has_keys_of_its_own(one: str, other: str) -> None:
    assert normal_form(one) != normal_form(other)


@exactly
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_key_of_a_key_is_itself_and_composition_does_not_matter(text: str) -> None:
    key = normal_form(text)
    assert normal_form(key) == key
    assert normal_form(unicodedata.normalize("NFD", text)) == normal_form(unicodedata.normalize("NFC", text))


pieces = st.lists(
    st.sampled_from([*"0123456789", "²", "₃", "½", "①", "٣", "４", " ", "a", "Room ", "東", ".", ",", "\u200b", "-"]),
    max_size=12,
).map("".join)


def numerals(text: str) -> list[tuple[float, bool]]:
    """Every digit as its value, with whether it is one of the small or broken ones."""
    return [
        (unicodedata.numeric(sign), unicodedata.category(sign) == "No" and not 0x2460 <= ord(sign) <= 0x2473)
        for sign in text
        if sign.isnumeric()
    ]


@exactly
@given(pieces, pieces)
def test_texts_whose_digits_differ_never_share_a_key(one: str, other: str) -> None:
    if normal_form(one) == normal_form(other):
        assert numerals(one) == numerals(other)


@pytest.mark.parametrize(
    ("loud", "quiet"), [("DIE STRASSE", "Die Straße"), ("ΝΕΡΟ ΚΑΙ ΨΩΜΙ", "Νερό και ψωμί"), ("IŞIK", "ışık")]
)
def test_capitals_leave_out_accents_and_the_sharp_s(loud: str, quiet: str) -> None:
    assert loud_form(loud) == quiet_form(quiet)
    assert loud_form(quiet) is None


@pytest.mark.parametrize("piece", ["a", "\u200d", "①", ". ", "東 ", "A\u030a", "ｶﾞ"])
def test_long_texts_take_linear_time(piece: str) -> None:
    started = process_time()
    normal_form(piece * (50_000 // len(piece)))
    assert process_time() - started < 5
