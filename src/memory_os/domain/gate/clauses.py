"""Which part of a text depends on which other: its cause, its condition, its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_os.domain.gate.fillers import small
from memory_os.domain.gate.reading import QUANTITIES, Reading
from memory_os.domain.gate.small_words import CLAUSES

if TYPE_CHECKING:
    from memory_os.domain.gate.comparing import Comparison


def clauses(found: Comparison) -> list[str]:
    """Which part of the text depends on the other: the cause, the condition, the time."""
    sides = [_connectives(reading) for reading in (found.left, found.right)]
    if not all(sides):
        return ["clause: one side only"] if any(sides) else []
    partner = {one.place: other.place for one, other in found.pairs}
    if [partner[place] for place in sorted(partner)] == sorted(partner.values()) and [
        (sort, first_after(found.left, at)) for sort, at in sides[0]
    ] == [(sort, first_after(found.right, at, partner)) for sort, at in sides[1]]:
        return []
    if len(sides[0]) + len(sides[1]) > 2:  # noqa: PLR2004 - one on each side
        return ["clause: several"]
    (sort, at), (other_sort, other_at) = sides[0][0], sides[1][0]
    mine, yours = _dependent(found.left, sort, at), _dependent(found.right, other_sort, other_at)
    alike = sort == other_sort or {sort, other_sort} == {"cause", "effect"}
    told = alike and mine is not None and yours is not None
    if told and all((place in (mine or ())) == (partner[place] in (yours or ())) for place in partner):
        return []
    return [f"clause: {found.left.lows[at]} / {found.right.lows[other_at]}"]


def _connectives(reading: Reading) -> list[tuple[str, int]]:
    table = CLAUSES.get(reading.language, {})
    starts = {item.place: item for item in reading.items}
    lows, _ = small(reading)
    return [
        (table[low], at)
        for at, low in enumerate(lows)
        if low in table
        and lows[at + 1 : at + 2]
        and lows[at + 1][-1:].isalnum()
        and not (at + 1 in starts and starts[at + 1].sort in QUANTITIES)
    ]


def first_after(reading: Reading, at: int, partner: dict[int, int] | None = None) -> int:
    """The place of the first item after a connective; of its partner on the left where partners are given."""
    place = next((item.place for item in reading.items if item.place > at and not item.light), -1)
    if partner is None:
        return place
    return next((mine for mine, yours in partner.items() if yours == place), -1)


def _dependent(reading: Reading, sort: str, at: int) -> set[int] | None:
    """Places of the items in the clause that a connective begins; None where its end can't be told.

    Of an effect (so, therefore) those of the other clause: its cause.
    """
    places = {item.place for item in reading.items}
    if sort == "relative":
        head = first_after(reading, at)
        return {head}
    end = next((place for place in range(at, len(reading.lows)) if reading.lows[place] in {",", ";"}), -1)
    if end < 0 and not any(place < at for place in places):
        return None
    inside = {place for place in places if at < place and (end < 0 or place < end)}
    return places - inside if sort == "effect" else inside
