from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import pytest

from memory_os.domain import code_points
from memory_os.domain.code_points import (
    COMPATIBILITY_NUMBERS,
    DIGITS,
    IGNORED,
    SEPARATORS,
    SPACES,
    UNSPACED_LETTERS,
    Ranges,
    characters,
    postgres_class,
    regex_class,
)

TABLES = {name: table for name, table in vars(code_points).items() if name.isupper()}
OLD = unicodedata.ucd_3_2_0


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_ascending_and_do_not_overlap(name: str) -> None:
    table: Ranges = TABLES[name]
    flat = [point for pair in table for point in pair]
    assert flat == sorted(flat)
    assert all(high < low for (_, high), (low, _) in pairwise(table))


def test_separators_are_white_space_and_punctuation_and_a_few_named_signs() -> None:
    extra = set("`^|~<>=\u02bb\u02bc")
    for character in characters(SEPARATORS):
        category = unicodedata.category(character)
        assert category[0] in "PZ" or character.isspace() or character in extra, hex(ord(character))
    assert not set("+#$") & set(characters(SEPARATORS))


def test_no_punctuation_or_space_of_unicode_is_forgotten() -> None:
    # Unicode 3.2, which every Python carries: what was punctuation then and is now.
    separators = set(characters(SEPARATORS))
    for point in range(0x110000):
        character = chr(point)
        if OLD.category(character)[0] in "PZ" and unicodedata.category(character)[0] in "PZ" and character != "#":
            assert character in separators, hex(point)


def test_spaces_and_digits_follow_unicode() -> None:
    assert all(character.isspace() for character in characters(SPACES))
    assert set(characters(SPACES)) <= set(characters(SEPARATORS))
    assert all(unicodedata.normalize("NFKC", digit) in "0123456789" for digit in characters(DIGITS))
    assert all(unicodedata.normalize("NFKC", number)[0].isdigit() for number in characters(COMPATIBILITY_NUMBERS))


def test_what_is_ignored_parts_nothing_and_is_no_letter() -> None:
    assert not set(characters(IGNORED)) & set(characters(SEPARATORS))
    letters = {hex(ord(character)) for character in characters(IGNORED) if character.isalpha()}
    # Hangul fillers are letters by category and invisible by purpose.
    assert letters == {"0x115f", "0x1160", "0x3164", "0xffa0"}


def test_unspaced_letters_are_letters_that_never_join_what_stands_before_them() -> None:
    for character in characters(UNSPACED_LETTERS):
        assert unicodedata.combining(character) == 0
        assert unicodedata.category(character)[0] in "LNSC"


def test_classes_match_their_tables_and_nothing_else() -> None:
    table: Ranges = ((0x0000, 0x0001), (0x41, 0x41), (0x1F300, 0x1F301))
    pattern = re.compile(f"[{regex_class(table)}]")
    matched = {character for character in map(chr, range(0x20000)) if pattern.match(character)}
    assert matched == {"\x00", "\x01", "A", "\U0001f300", "\U0001f301"}
    assert postgres_class(table) == r"\U00000001\U00000041\U0001f300-\U0001f301"
