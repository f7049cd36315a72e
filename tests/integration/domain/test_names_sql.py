# ruff: noqa: RUF001 - letters of other scripts are the point

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_os.domain.code_points import (
    COMPATIBILITY_NUMBERS,
    IGNORED,
    SEPARATORS,
    SINCE_UNICODE_14,
    UNSPACED_LETTERS,
    Ranges,
    characters,
)
from memory_os.domain.names import canonical_name

Connection = psycopg.Connection[tuple[object, ...]]

HARD = [
    "İstanbul",
    "ISPARTA ısparta",
    "i\u0307\u0307 I\u0307\u0323",
    "A\u030angstro\u0308m Ångström \u212bngstr\u00f6m",
    "ẞ ß SS",
    "Ｆｕｌｌ　ｗｉｄｔｈ　１２",
    "ﬁ ﬀ ﬆ ﷺ",
    "ΟΔΥΣΣΕΎΣ Οδυσσεύς",
    "\u1f80\u0345 \u0345\u03b1 ᾳ ΑΙ",
    "a\u200db\u200cc\u200bd\ufeffe\u00adf\u2060g",
    "김 민수 김민수 \u1100\u1161 \u11a8",
    "\u1112\u1161\u11ab\u1100\u1173\u11af",
    "가 \u11a8",
    "ジョン・スミス ｼﾞｮﾝ ｽﾐｽ か\u3099",
    "ที่ นี่ ำ",
    "北 京 大学 \u2f00 \ufa0e",
    "q\u0307\u0323 q\u0323\u0307 e\u0301\u0327",
    "10² 2½ ①② 1① ㏠ 5㏠",
    "O´Brien O\u2019Brien O\u02bcBrien",
    "C++ C# C ?? !! --",
    "≠ =\u0338 <\u0338",
    "Room 10 1 Room 101 방 10 1",
    "Finch™ ® ©",
    "\u0958 \u09dc \ufb2a \u2adc",
    "𝟘𝟙 𝒜 Ꭰ ꭰ Ა ა \u10a0",
    "\U00010d50 \U0001e030 ANN Ä",
    "\t\n\x0b\x0c\r\x1c\x85\u2028 x",
    "\u0001\u001b[2J",
    "👨\u200d👩\u200d👧 ❤\ufe0f",
    "",
    "   ",
    "x" * 5000,
    "? " * 2000,
]

assigned = st.characters(exclude_categories=["Cs", "Cn"], exclude_characters="\x00")


def drawn_from(table: Ranges) -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(set(characters(table)) - {"\x00"}))


letters = (
    assigned
    | st.sampled_from("aAiIİıſKÅ09ß ẞσςΣ가나ㄱ각北あがｶﾞที่ั \u0301\u0307\u0323\u0345\u3099\u200d")
    | drawn_from(SEPARATORS)
    | drawn_from(COMPATIBILITY_NUMBERS)
    | drawn_from(((0xAC00, 0xAC40), (0x0E01, 0x0E5B), (0x3041, 0x30FF)))
    | drawn_from(((0x00AD, 0x00AD), (0x200B, 0x200F), (0xFE00, 0xFE0F)))
)
names = st.text(letters, max_size=24)


def in_postgres(database: Connection, texts: Sequence[str]) -> list[str]:
    rows = database.execute(
        "SELECT canonical_name(name) FROM unnest(%s::text[]) WITH ORDINALITY AS given(name, place) ORDER BY place",
        [list(texts)],
    )
    return [str(row[0]) for row in rows]


def in_python(texts: Sequence[str]) -> list[str]:
    return [canonical_name(text) for text in texts]


def test_hard_names_are_equal_in_every_locale(locale_database: Connection) -> None:
    found = dict(zip(HARD, in_postgres(locale_database, HARD), strict=True))
    assert found == {text: canonical_name(text) for text in HARD}


@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(texts=st.lists(names, min_size=1, max_size=40))
def test_any_names_are_equal(database: Connection, texts: list[str]) -> None:
    assert in_postgres(database, texts) == in_python(texts)


@pytest.mark.parametrize("low", range(0, 0x20000, 0x4000))
def test_every_code_point_is_treated_alike(database: Connection, low: int) -> None:
    # Each letter alone, between digits, doubled, and before a mark that shows its combining class.
    dull = set(range(0x3400, 0xA000)) | set(range(0xAC00, 0xD7A4)) | set(range(0xD800, 0xF900))
    points = [point for point in range(max(1, low), low + 0x4000) if point not in dull or point % 97 == 0]
    texts = [
        f"a{chr(point)}\u0321 0{chr(point)}{chr(point)}9 {chr(point)}"
        for point in points
        if not 0xD800 <= point <= 0xDFFF
    ]
    different = [
        ascii(text)
        for text, there, here in zip(texts, in_postgres(database, texts), in_python(texts), strict=True)
        if there != here
    ]
    assert different == []


@pytest.mark.parametrize(
    "table", [SINCE_UNICODE_14, IGNORED[-4:], UNSPACED_LETTERS[-4:]], ids=["new", "ignored", "unspaced"]
)
def test_code_points_beyond_the_basic_planes_are_treated_alike(database: Connection, table: Ranges) -> None:
    points = list(characters(table))[:: max(1, sum(high - low for low, high in table) // 4000)]
    texts = [f"A{point}\u0321 {point} {point} Ä" for point in points]
    assert in_postgres(database, texts) == in_python(texts)


def test_the_function_serves_a_generated_column(database: Connection) -> None:
    database.execute(
        "CREATE TABLE named (name text PRIMARY KEY,"
        " canonical text GENERATED ALWAYS AS (canonical_name(name)) STORED UNIQUE)"
    )
    database.execute("INSERT INTO named (name) VALUES ('Ardal & Finch')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        database.execute("INSERT INTO named (name) VALUES ('ARDAL-FINCH')")
    assert database.execute("SELECT canonical FROM named").fetchall() == [("ardal finch",)]


def test_the_function_is_immutable_and_parallel_safe_and_strict(database: Connection) -> None:
    row = database.execute(
        "SELECT provolatile::text, proparallel::text, proisstrict FROM pg_proc WHERE proname = 'canonical_name'"
    ).fetchone()
    assert row == ("i", "s", True)


def test_the_expression_stands_up_to_a_hostile_search_path(database: Connection) -> None:
    with database.transaction(force_rollback=True):
        database.execute("CREATE SCHEMA hostile")
        database.execute("CREATE FUNCTION hostile.btrim(text, text) RETURNS text LANGUAGE sql RETURN 'fooled'")
        database.execute("SET LOCAL search_path = hostile, pg_catalog, public")
        assert in_postgres(database, [" Ann "]) == ["ann"]
