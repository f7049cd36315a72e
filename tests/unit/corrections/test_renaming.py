"""Putting another name in the place of one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.corrections.renaming import Naming, Span, distinct, renamed

exactly = settings(derandomize=True, database=None, deadline=None)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (([(4, 6)], [(0, 2)]), [(0, 2), (4, 6)]),
        (([(0, 2)], [(0, 2)]), [(0, 2)]),
        (([(0, 2)], [(0, 5)]), [(0, 5)]),
        (([(0, 4), (6, 8)], [(2, 7)]), [(0, 4), (6, 8)]),
        (([(0, 2), (2, 4)], []), [(0, 2), (2, 4)]),
        (([], []), []),
    ],
    ids=["in order", "once", "the longer", "the first", "side by side", "nothing"],
)
def test_spans_that_overlap_are_settled(found: tuple[list[Span], list[Span]], wanted: list[Span]) -> None:
    assert distinct(*found) == wanted


def test_each_span_gets_the_name_and_the_rest_stays() -> None:
    assert renamed("Ada met Bob, and BOB left.", [(8, 11), (17, 20)], "Eve Stone") == (
        "Ada met Eve Stone, and Eve Stone left."
    )
    assert renamed("Ada", [(0, 3)], "日本") == "日本"
    assert renamed("Ada", [], "Bob") == "Ada"


spans = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)).map(lambda pair: (pair[0], sum(pair))), max_size=6)


@exactly
@given(st.text(min_size=25, max_size=40), spans)
def test_what_is_no_name_stays_as_it_is(text: str, found: list[Span]) -> None:
    kept = distinct(found)
    assert all(left[1] <= right[0] for left, right in pairwise(kept))
    outside = [character for place, character in enumerate(text) if not any(a <= place < b for a, b in kept)]
    assert renamed(text, kept, "") == "".join(outside)
    assert len(renamed(text, kept, "\0\0")) == len(outside) + 2 * len(kept)


def test_a_memory_has_to_do_with_an_entity_in_any_way() -> None:
    assert not Naming([], [], subject=False, tied=False)
    for one in (
        Naming([(0, 1)], [], subject=False, tied=False),
        Naming([], [(0, 1)], subject=False, tied=False),
        Naming([], [], subject=True, tied=False),
        Naming([], [], subject=False, tied=True),
    ):
        assert one
