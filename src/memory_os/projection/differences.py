"""What differs between a graph and its canonical rows: two sorted sequences of rows, held against each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from memory_os.graph.port import PARTS, GraphRow, Key, Part, TypedEdge, key_of
from memory_os.graph.port import LinkEdge as Link

Kind = Literal["missing", "extra", "differing"]

DEFERRED = 20_000
"""Differences that a repair keeps in memory for a further look, about 20 MB."""

SAMPLE = 100
"""Differences that an outcome names one by one; the others are counted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that the graph lacks, has too much or has otherwise; `found` has several where the graph repeats it."""

    part: Part
    key: Key
    expected: GraphRow | None
    found: Sequence[GraphRow]

    @property
    def kind(self) -> Kind:
        """How it differs."""
        if self.expected is None or len(self.found) > 1:
            return "extra"
        return "differing" if self.found else "missing"

    def aggregates(self) -> set[str]:
        """Ids of the records whose events are going to settle this.

        A row that is missing or differs is set by its own record's event, and what a memory mentions by the memory's;
        one that is too much also goes with its ends.
        """
        if self.expected is not None and self.part != "co_occurrences":
            return {self.key[0]}
        ends = {
            end.id
            for row in (self.expected, *self.found)
            if isinstance(row, TypedEdge | Link)
            for end in ((row.source, row.target) if isinstance(row, TypedEdge) else (row.target,))
        }
        links = {row.entity_id for row in (self.expected, *self.found) if isinstance(row, Link)}
        return {*self.key, *ends, *links}

    def described(self) -> dict[str, Any]:
        """As an operator reads it: no text of a memory is in a graph, so none is here."""
        found = [msgspec.to_builtins(row) for row in self.found]
        return {
            "part": self.part,
            "kind": self.kind,
            "key": list(self.key),
            "expected": msgspec.to_builtins(self.expected) if self.expected is not None else None,
            "found": found[0] if len(found) == 1 else found or None,
        }


@dataclass(slots=True)
class PartCounts:
    """Rows of one part that were expected, and how many of each kind differ."""

    rows: int = 0
    missing: int = 0
    extra: int = 0
    differing: int = 0


@dataclass(slots=True)
class Outcome:
    """What a comparison has found.

    `waiting` are differences that events in the queue will settle, `dead` those whose event died; neither is counted
    among the parts. `repaired` of the others were mended. `damage` tells why the graph can't be compared at all.
    """

    parts: dict[Part, PartCounts] = field(default_factory=lambda: {part: PartCounts() for part in PARTS})
    waiting: int = 0
    dead: int = 0
    repaired: int = 0
    damage: str | None = None
    sample: list[Difference] = field(default_factory=list)
    deferred: list[Difference] = field(default_factory=list)
    """Those that are waiting, as far as `DEFERRED` goes: a repair looks at them again when their events are done."""

    def count(self, differences: Iterable[Difference]) -> None:
        """Take differences in."""
        for difference in differences:
            counts = self.parts[difference.part]
            setattr(counts, difference.kind, getattr(counts, difference.kind) + 1)
            if len(self.sample) < SAMPLE:
                self.sample.append(difference)

    def defer(self, difference: Difference) -> None:
        """Take in one that an event is going to settle."""
        self.waiting += 1
        if len(self.deferred) < DEFERRED:
            self.deferred.append(difference)

    def take_deferred(self) -> list[Difference]:
        """Give what is waiting for another look, as if it had not been counted yet."""
        taken, self.deferred = self.deferred, []
        self.waiting -= len(taken)
        return taken

    def total(self, kind: Kind) -> int:
        """Differences of one kind in all parts."""
        return sum(getattr(counts, kind) for counts in self.parts.values())

    @property
    def left(self) -> int:
        """Differences that are still there."""
        return self.total("missing") + self.total("extra") + self.total("differing") - self.repaired


def compare(part: Part, expected: Sequence[GraphRow], found: Sequence[GraphRow]) -> list[Difference]:
    """Hold the rows of one range of keys against each other, in the order of their keys."""
    wanted = {key_of(row): row for row in expected}
    there: Mapping[Key, list[GraphRow]] = group(found)
    differing = (key for key in wanted.keys() | there.keys() if [wanted.get(key)] != there.get(key, []))
    return [Difference(part, key, wanted.get(key), there.get(key, [])) for key in sorted(differing)]


def group(rows: Iterable[GraphRow]) -> dict[Key, list[GraphRow]]:
    """Rows by key; a graph in order has one of each."""
    groups: dict[Key, list[GraphRow]] = {}
    for row in rows:
        groups.setdefault(key_of(row), []).append(row)
    return groups
