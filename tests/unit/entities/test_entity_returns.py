"""What becomes of edges and links when a merge is taken back."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.entities.test_entity_moves import INTO, SOURCE, after, edges, links

from memory_os.entities.moving import EDGES, LINKS, Moves, Relation, Row, plan_moves
from memory_os.entities.returning import plan_return, touched_ids

Rows = dict[UUID, dict[str, Any]]


def kept(moves: Moves) -> dict[str, Any]:
    """A plan as an act keeps it."""
    collapsed = [{"kept": one.kept, "references": one.references, "gone": one.gone} for one in moves.collapsed]
    before = {"moved": moves.moved, "collapsed": collapsed, "looped": moves.looped}
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(before))
    return found


def merged(relation: Relation, rows: list[Row], moves: Moves) -> Rows:
    """The rows after a merge."""
    gone = {row["id"] for row in moves.gone}
    left: Rows = {row["id"]: after(relation, row) for row in rows if row["id"] not in gone}
    if relation is EDGES:
        for ident, count in moves.counts.items():
            left[ident]["co_reference_count"] = count
    return left


def undone(relation: Relation, moves: Moves, now: Rows) -> Rows:
    """The rows after the merge was taken back."""
    before = kept(moves)
    touched = touched_ids(before)
    plan = plan_return(relation, before, {key: row for key, row in now.items() if key in touched}, SOURCE, INTO)
    back: Rows = {row["id"]: dict(row) for row in (*plan.changed, *plan.back)}
    assert not {row["id"] for row in plan.back} & now.keys()
    return {**now, **back}


def ends(rows: Rows) -> dict[UUID, dict[str, Any]]:
    """What an undo has to put back of each, apart from times, which travel as text."""
    return {
        key: {name: row[name] for name in row if name not in ("created_at", "valid_from")} for key, row in rows.items()
    }


@given(links())
def test_links_are_where_they_were(rows: list[Row]) -> None:
    moves = plan_moves(LINKS, rows, SOURCE, INTO)
    assert ends(undone(LINKS, moves, merged(LINKS, rows, moves))) == ends({row["id"]: dict(row) for row in rows})


@given(edges(), st.integers(0, 3))
def test_edges_are_where_they_were_and_keep_what_they_gained(rows: list[Row], gain: int) -> None:
    moves = plan_moves(EDGES, rows, SOURCE, INTO)
    now = merged(EDGES, rows, moves)
    for row in now.values():
        row["co_reference_count"] += gain
    expected = {row["id"]: dict(row) for row in rows}
    for ident in now:
        expected[ident]["co_reference_count"] += gain
    assert ends(undone(EDGES, moves, now)) == ends(expected)


@given(edges(), st.data())
def test_what_was_deleted_since_stays_deleted_with_what_had_become_part_of_it(
    rows: list[Row], data: st.DataObject
) -> None:
    moves = plan_moves(EDGES, rows, SOURCE, INTO)
    now = merged(EDGES, rows, moves)
    lost = data.draw(st.sets(st.sampled_from(sorted(now)))) if now else set()
    gone = lost | {row["id"] for one in moves.collapsed if one.kept["id"] in lost for row in one.gone}
    found = undone(EDGES, moves, {key: row for key, row in now.items() if key not in lost})
    assert found.keys() == {row["id"] for row in rows} - gone


@given(links(), edges())
def test_far_ends_that_moved_since_stay_and_take_along_what_comes_back(some: list[Row], others: list[Row]) -> None:
    elsewhere = UUID(int=50)
    for relation, rows, far in (
        (LINKS, some, ("entity_id", "target_id")),
        (EDGES, others, ("source_memory_id", "target_memory_id")),
    ):
        moves = plan_moves(relation, rows, SOURCE, INTO)
        now = merged(relation, rows, moves)
        for row in now.values():
            for end in far:
                if row[end] not in (None, SOURCE, INTO):
                    row[end] = elsewhere
        found = undone(relation, moves, now)
        touched = set(touched_ids(kept(moves))) | {row["id"] for row in moves.gone}
        for row in rows:
            for end in far if row["id"] in touched else ():
                stays = row[end] in (None, SOURCE, INTO)
                assert found[row["id"]][end] == (row[end] if stays else elsewhere)
