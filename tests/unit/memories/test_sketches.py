"""Sketches that are kept in the process: the nearest are those that a plain search finds, whatever came and went."""

from __future__ import annotations

from uuid import UUID

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.memories.sketches import Scope, sketches_of

BITS = 72  # not a multiple of a word

acts = st.lists(st.tuples(st.sampled_from(("put", "put", "drop")), st.integers(0, 30), st.integers(0, 2**BITS - 1)))


def bits_of(number: int) -> bytes:
    return number.to_bytes(BITS // 8, "big")


@settings(max_examples=200, deadline=None)
@given(acts, st.integers(0, 2**BITS - 1), st.integers(1, 40))
def test_the_nearest_are_those_of_a_plain_search(history: list[tuple[str, int, int]], wanted: int, most: int) -> None:
    scope, known = Scope(), dict[int, int]()
    for act, ident, bits in history:
        if act == "put":
            scope.put(UUID(int=ident).bytes, bits_of(bits), 1)
            known[ident] = bits
        else:
            scope.drop([UUID(int=ident).bytes])
            known.pop(ident, None)
    vector = np.array([[1.0 if wanted >> (BITS - 1 - at) & 1 else -1.0 for at in range(BITS)]], np.float32)
    found = scope.nearest(sketches_of(vector)[0], most)
    distances = [(known[ident.int] ^ wanted).bit_count() for ident in found]
    assert distances == sorted((bits ^ wanted).bit_count() for bits in known.values())[:most]
    assert len(set(found)) == len(found)
