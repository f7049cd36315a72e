"""Compares two answers, apart from what must differ between two worlds: times, positions, ids that nobody chose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isclose
from typing import Any

UNEQUAL = frozenset(
    {
        *("timings_ms", "retrieval_id", "position", "lag", "lag_events", "instance", "as_of"),
        "pack_tokens",  # times of today may be of more tokens than others
    }
)
"""Fields that hold what differs from one call to the next."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NOW = re.compile(r"20(2[5-9]|[3-9]\d)-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)")
"""A moment of today; those that the histories tell of are older."""

TOLERANCE = 1e-5
"""Of scores, which fall with the seconds between two questions."""


class Twins:
    """Which id of the one world stands for which of the other."""

    def __init__(self) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def differences(self, one: Any, other: Any, path: str = "") -> Iterator[str]:
        """What differs, with where it stands."""
        if isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                yield f"{path}: {sorted(one)} and {sorted(other)}"
            for name in one.keys() & other.keys() - UNEQUAL:
                if name == "next_cursor":
                    if (one[name] is None) != (other[name] is None):
                        yield f"{path}/next_cursor: {one[name]} and {other[name]}"
                else:
                    yield from self.differences(one[name], other[name], f"{path}/{name}")
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                yield f"{path}: {len(one)} and {len(other)} of them: {one} and {other}"
            for place, (first, second) in enumerate(zip(one, other, strict=False)):
                yield from self.differences(first, second, f"{path}/{place}")
        elif not self._same(one, other):
            yield f"{path}: {one!r} and {other!r}"

    def _same(self, one: Any, other: Any) -> bool:
        if isinstance(one, float) and isinstance(other, int | float):
            return isclose(one, other, abs_tol=TOLERANCE)
        if isinstance(one, str) and isinstance(other, str):
            first, second = _NOW.sub("now", one), _NOW.sub("now", other)
            if _UUID.sub("id", first) != _UUID.sub("id", second):
                return False
            return all(map(self._twins, _UUID.findall(first), _UUID.findall(second)))
        return bool(one == other)

    def _twins(self, one: str, other: str) -> bool:
        return self._there.setdefault(one, other) == other and self._back.setdefault(other, one) == one
