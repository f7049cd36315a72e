"""The pure rules of entities."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.names import canonical_name
from memory_os.entities.checking import distinct_aliases
from memory_os.entities.writing import embedded_text

TEXTS = st.text(min_size=1, max_size=20) | st.sampled_from(
    ["Ann", "ANN", "ann.", "\uff21nn", "Bo", "Room 101", "Room 102"]
)


@given(name=TEXTS, aliases=st.lists(TEXTS, max_size=12))
def test_aliases_are_distinct_by_canonical_form_and_none_is_lost(name: str, aliases: list[str]) -> None:
    kept = distinct_aliases(name, aliases)
    forms = [canonical_name(alias) for alias in kept]
    assert len(set(forms)) == len(forms)
    assert canonical_name(name) not in forms
    assert {*forms, canonical_name(name)} == {canonical_name(text) for text in (name, *aliases)}
    assert distinct_aliases(name, kept) == kept
    rest = iter(aliases)
    assert all(alias in rest for alias in kept)


def test_differing_digits_are_different_aliases() -> None:
    assert distinct_aliases("Room", ["Room 101", "Room 102", "room-101"]) == ["Room 101", "Room 102"]


def test_the_embedded_text_names_what_is_there() -> None:
    assert embedded_text("Ann", ["Annie", "A. Lee"], "Runs the shop.") == "Ann. Annie, A. Lee. Runs the shop."
    assert embedded_text("Ann", [], None) == "Ann"
    assert embedded_text("Ann", [], "") == "Ann"
