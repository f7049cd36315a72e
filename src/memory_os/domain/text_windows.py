"""BM25 of passages and of their windows: each with those that stand next to it in its source, as if they were one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory_os.domain.text_ranking import K1, USUAL_WORDS, B

_STRIDE = 2**32


def weigh_windows(
    places: Sequence[tuple[int, int]],
    lengths: Sequence[int],
    times: Sequence[bytes],
    rarities: Sequence[float],
    reach: int,
) -> tuple[list[float], list[float]]:
    """What the words of a question weigh in each passage, and in each with its neighbours.

    A window's length is held against that of a window without gaps: at the edge of a source it is shorter, and what
    stands in it weighs more.

    Args:
        places: Of each passage a number for its source, and its place there.
        lengths: How many different words each has.
        times: How often each word of the question occurs in each, one byte a word; empty for not at all.
        rarities: The question's side of BM25 for each word.
        reach: Passages before and after one that its window has; those that are not given count as empty.
    """
    if not places or not rarities:
        return [0.0] * len(places), [0.0] * len(places)
    counted = np.zeros((len(places), len(rarities)))
    for row, one in zip(counted, times, strict=True):
        if one:
            row[:] = np.frombuffer(one, dtype=np.uint8)
    size = np.asarray(lengths, dtype=np.float64)
    weights = np.asarray(rarities)
    keys = np.asarray([source * _STRIDE + ordinal for source, ordinal in places], dtype=np.int64)
    order = np.argsort(keys)
    ordered = keys[order]
    around, around_size = np.zeros_like(counted), np.zeros_like(size)
    for step in range(-reach, reach + 1):
        at = np.minimum(np.searchsorted(ordered, keys + step), len(keys) - 1)
        there = ordered[at] == keys + step
        around[there] += counted[order[at[there]]]
        around_size[there] += size[order[at[there]]]
    own = _impacts(counted, size, USUAL_WORDS) @ weights
    window = _impacts(around, around_size, USUAL_WORDS * (2 * reach + 1)) @ weights
    return own.tolist(), window.tolist()


def _impacts(times: NDArray[np.float64], length: NDArray[np.float64], usual: float) -> NDArray[np.float64]:
    return times * (K1 + 1) / (times + (K1 * (1 - B + B * length / usual))[:, None])
