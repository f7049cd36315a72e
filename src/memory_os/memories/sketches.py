"""The sketches of scopes, kept in the process: the signs of vectors, by whose distance the nearest are found.

The database is asked for what has changed since the last look, in the transaction that uses it, so nothing that was
committed before is missed. What has gone meanwhile may linger here; it is recognised when it is looked up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory_os.storage.database import Transaction

MOST: Final = 500_000
"""Sketches that a process keeps, about 200 bytes each; the scopes that were not used for longest go first."""

_WORD: Final = 8
_ID: Final = 16

Key = tuple[UUID, str, str]
"""Tenant, scope and model."""


@dataclass(slots=True)
class Scope:
    """The sketches of one scope and model, as words of 64 bits."""

    horizon: int = 0
    count: int = 0
    places: dict[bytes, int] = field(default_factory=dict)
    ids: list[bytes] = field(default_factory=list)
    words: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((0, 0), np.uint64))

    def put(self, ids: bytes, bits: bytes, count: int) -> None:
        """Take sketches in; one that is there already is replaced."""
        rows = _words_of(np.frombuffer(bits, np.uint8).reshape(count, -1))
        self._make_room(count, rows.shape[1])
        for row, start in enumerate(range(0, count * _ID, _ID)):
            ident = ids[start : start + _ID]
            place = self.places.get(ident)
            if place is None:
                place = self.places[ident] = self.count
                self.ids.append(ident)
                self.count += 1
            self.words[place] = rows[row]

    def drop(self, ids: Iterable[bytes]) -> None:
        """Forget sketches; the last ones take their places."""
        for ident in ids:
            place = self.places.pop(ident, None)
            if place is None:
                continue
            self.count -= 1
            last = self.ids.pop()
            if last != ident:
                self.ids[place] = last
                self.places[last] = place
                self.words[place] = self.words[self.count]

    def nearest(self, sketch: NDArray[np.uint64], most: int) -> list[UUID]:
        """The ids of the nearest sketches, the nearest first."""
        if not self.count:
            return []
        distances = np.bitwise_count(self.words[: self.count] ^ sketch).sum(axis=1, dtype=np.int64)
        chosen = np.argpartition(distances, most)[:most] if most < self.count else np.arange(self.count)
        return [UUID(bytes=self.ids[place]) for place in chosen[np.argsort(distances[chosen], kind="stable")]]

    def _make_room(self, more: int, width: int) -> None:
        if self.count + more > len(self.words):
            room = np.zeros((max(64, 2 * (self.count + more)), width), np.uint64)
            if self.count:
                room[: self.count] = self.words[: self.count]
            self.words = room


class Sketches:
    """The sketches of the scopes that were used last."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._scopes: OrderedDict[Key, Scope] = OrderedDict()

    async def nearest(
        self, tx: Transaction, scope: str, model: str, vectors: NDArray[np.float32], most: int
    ) -> list[list[UUID]]:
        """The memories of a scope whose sketches are nearest to those of some vectors; some may be gone by now."""
        known = await self._read(tx, scope, model)
        return [known.nearest(sketch, most) for sketch in sketches_of(vectors)]

    async def forget_gone(self, tx: Transaction, scope: str, model: str, ids: Sequence[UUID]) -> bool:
        """Forget those of some memories that have no sketch any more; whether there were any."""
        async with tx.as_steward():
            rows = await tx.hot("live_sketches", {**_given(tx, scope, model), "ids": list(ids)})
        gone = set(ids) - {row["memory_id"] for row in rows}
        known = self._scopes.get((tx.tenant_id, scope, model))
        if known is not None:
            known.drop(ident.bytes for ident in gone)
        return bool(gone)

    async def _read(self, tx: Transaction, scope: str, model: str) -> Scope:
        key = (tx.tenant_id, scope, model)
        known = self._scopes.get(key) or Scope()
        async with tx.as_steward():  # the process keeps them for all who write in the scope
            row = (await tx.hot("read_sketches", {**_given(tx, scope, model), "horizon": known.horizon}))[0]
        if row["sketches"]:
            known.put(row["ids"], row["bits"], row["sketches"])
        known.horizon = max(known.horizon, row["horizon"])
        self._scopes[key] = known
        self._scopes.move_to_end(key)
        kept = sum(each.count for each in self._scopes.values())
        while kept > self._most and len(self._scopes) > 1:
            kept -= self._scopes.popitem(last=False)[1].count
        return known


def sketches_of(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """The sketch of each vector, as pgvector's `binary_quantize` makes it: a bit for each component above 0."""
    return _words_of(np.packbits(vectors > 0, axis=1))


def _words_of(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    padding = -rows.shape[1] % _WORD
    padded = np.pad(rows, ((0, 0), (0, padding))) if padding else rows
    return np.ascontiguousarray(padded).view(np.uint64)


def _given(tx: Transaction, scope: str, model: str) -> dict[str, Any]:
    return {"tenant_id": tx.tenant_id, "scope": scope, "model": model}
