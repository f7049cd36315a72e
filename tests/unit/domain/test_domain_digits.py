"""The digits that tell names apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.digits import digits_of
from memory_os.domain.names import canonical_name


@pytest.mark.parametrize(
    ("name", "digits"),
    [
        ("Ann Lee", ()),
        ("Room 101", ("101",)),
        ("Room 10 1", ("10", "1")),
        ("UA123", ("123",)),
        ("ASR1603", ("1603",)),
        ("2023 Tax Return", ("2023",)),
        ("v1.2.3", ("1", "2", "3")),
        ("R2D2", ("2", "2")),
        ("Room \u0661\u0660\u0661", ("101",)),
        ("Room \uff11\uff10\uff11", ("101",)),
        ("10\u00b2 m", ("10", "2")),
    ],
)
def test_the_digits_of_a_name(name: str, digits: tuple[str, ...]) -> None:
    assert digits_of(name) == digits


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Room 101", "Room 102"),
        ("Room 101", "Room 10 1"),
        ("UA123", "UA124"),
        ("UA123", "UA132"),
        ("ASR1603", "ASR1605"),
        ("2023 Tax Return", "2024 Tax Return"),
        ("Q1 2023", "2023 Q1"),
    ],
)
def test_differing_digits_are_different_names(one: str, other: str) -> None:
    assert digits_of(one) != digits_of(other)
    assert canonical_name(one) != canonical_name(other)


@given(st.text(max_size=20), st.text(max_size=20))
def test_names_of_one_canonical_form_have_the_same_digits(one: str, other: str) -> None:
    if canonical_name(one) == canonical_name(other):
        assert digits_of(one) == digits_of(other)
    assert digits_of(canonical_name(one)) == digits_of(one)
