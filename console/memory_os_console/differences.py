"""Differences between a graph and its canonical rows as a page shows them: the properties that differ, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from memory_os.graph.port import PARTS
from memory_os.projection.verifications import FoundDifference, PartReport
from memory_os_console.rendering import as_utc
from memory_os_console.tenants import find_uuid

HIDDEN: Final = "not shown"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES: Final = ("valid_from", "valid_to")
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {"mentions": ("memory_id", "entity_id"), "co_occurrences": ("a", "b")}
"""The properties that make a row's key, where it is not its id."""

Properties = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """One difference. `key` pairs each id with whether the events list can be narrowed to it.

    `expected` and `found` hold the properties of each row; no row at all is nothing. Of two single rows only the
    properties that differ are there.
    """

    part: str
    kind: str
    key: list[tuple[str, bool]]
    expected: list[Properties]
    found: list[Properties]


def show_parts(parts: Mapping[str, PartReport]) -> list[tuple[str, PartReport]]:
    """Counts by part in the order of a comparison, named as a page names them."""
    order = [*PARTS, *(parts.keys() - set(PARTS))]
    return [(_named(name), parts[name]) for name in order if name in parts]


def entities_of(differences: Sequence[FoundDifference]) -> set[UUID]:
    """Ids of the entities whose names stand in differences."""
    keys = (difference.key[0] for difference in differences if difference.part == "entities")
    return {ident for key in keys if (ident := find_uuid(key)) is not None}


def show_difference(difference: FoundDifference, names: Mapping[UUID, str]) -> ShownDifference:
    """A difference for a page. Of what people wrote it shows the names of the entities in `names`, and nothing else.

    Args:
        difference: As the comparison has found it.
        names: The entities that the reader may see.
    """
    expected, found = _rows(difference.expected), _rows(difference.found)
    differs = set[str]()
    if len(expected) == len(found) == 1:
        differs = {name for name in expected[0].keys() | found[0].keys() if expected[0].get(name) != found[0].get(name)}
    keys = _KEYS.get(difference.part, ("id",))
    may_name = bool(difference.key) and find_uuid(difference.key[0]) in names

    def shown(row: Mapping[str, Any]) -> Properties:
        return [
            (name.replace("_", " "), _text(name, value, may_name=may_name))
            for name, value in row.items()
            if (name in differs if differs else value is not None and name not in keys)
        ]

    return ShownDifference(
        _named(difference.part),
        difference.kind,
        [(ident, find_uuid(ident) is not None) for ident in difference.key],
        [shown(row) for row in expected],
        [shown(row) for row in found],
    )


def _named(part: str) -> str:
    return part.replace("_", "-")


def _rows(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - one row, several, or none, as JSON has them
    return [] if value is None else value if isinstance(value, list) else [value]


def _text(name: str, value: Any, *, may_name: bool) -> str:  # noqa: ANN401 - any JSON value
    if value is None:
        return "none"
    if name == "relationship" or (name == "name" and not may_name):
        return HIDDEN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):  # the end of an edge
        return " ".join(str(part) for part in value.values())
    if name in _TIMES and isinstance(value, int):
        return _moment(value)
    return str(value)


def _moment(microseconds: int) -> str:
    try:
        return as_utc(_EPOCH + timedelta(microseconds=microseconds))
    except OverflowError:
        return f"{microseconds} µs after 1970"
