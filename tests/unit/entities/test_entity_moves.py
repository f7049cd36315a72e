"""What becomes of the edges and links of an entity that is merged into another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from memory_os.entities.moving import EDGES, LINKS, MOST_REFERENCES, Moves, Relation, Row, plan_moves

SOURCE, INTO, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
NOW = datetime(2026, 1, 31, tzinfo=UTC)

confidences = st.sampled_from([0.0, 0.5, 1.0])
moments = st.sampled_from([None, NOW])
ends = st.sampled_from([SOURCE, INTO, OTHER])


@st.composite
def links(draw: st.DrawFn) -> list[Row]:
    """Links, as the database would allow them: none leads from an entity to itself."""
    rows = []
    for number in range(draw(st.integers(0, 12))):
        layer = draw(st.sampled_from(["entity", "memory"]))
        entity, target = draw(ends), draw(ends)
        if layer == "memory" or entity != target:
            rows.append(
                {
                    "id": UUID(int=100 + number),
                    "entity_id": entity,
                    "layer": layer,
                    "target_id": target,
                    "relationship": draw(st.sampled_from("ab")),
                    "confidence": draw(confidences),
                    "version": 1,
                    "valid_from": draw(moments),
                    "valid_to": None,
                    "created_at": NOW + timedelta(number),
                }
            )
    return rows


@st.composite
def edges(draw: st.DrawFn) -> list[Row]:
    """Edges between entities and memories, each claim once, as the unique key has it."""
    rows: dict[tuple[object, ...], Row] = {}
    for number in range(draw(st.integers(0, 12))):
        type_, entity, memory = (
            draw(st.sampled_from("AB")),
            draw(ends),
            draw(st.sampled_from([UUID(int=7), UUID(int=8)])),
        )
        outward = draw(st.booleans())
        rows[type_, entity, memory, outward] = {
            "id": UUID(int=100 + number),
            "type": type_,
            "confidence": draw(confidences),
            "version": 1,
            "source_entity_id": entity if outward else None,
            "target_memory_id": memory if outward else None,
            "target_entity_id": None if outward else entity,
            "source_memory_id": None if outward else memory,
            "co_reference_count": draw(st.integers(0, 5)),
            "created_at": NOW + timedelta(number),
        }
    return list(rows.values())


def after(relation: Relation, row: Row) -> dict[str, Any]:
    """A row whose ends at `SOURCE` are at `INTO`."""
    sides = relation.sides(row, SOURCE)
    return {**row, **{end: INTO for end, moves in zip(relation.ends, sides, strict=True) if moves}}


def says(relation: Relation, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*relation.ends, *relation.same))


def check(relation: Relation, rows: list[Row]) -> Moves:
    """What must hold of edges and links alike."""
    moves = plan_moves(relation, rows, SOURCE, INTO)
    gone, counts = {row["id"] for row in moves.gone}, moves.counts
    left = [after(relation, row) for row in rows if row["id"] not in gone]
    assert len(gone) == len(moves.gone)
    assert gone.isdisjoint(counts)
    assert not any(any(relation.sides(row, SOURCE)) for row in left)
    # What moved says what nothing else says; what did not move and had no equal stays as it was.
    moved = {row["id"] for row in moves.moved}
    for row in left:
        if row["id"] in moved:
            assert [other["id"] for other in left if says(relation, other) == says(relation, row)] == [row["id"]]
        assert (row["id"] in moved) == (row not in rows)
    # Nothing that was said is lost but what leads back to where it begins, and the most confident says it.
    for row in rows:
        now = after(relation, row)
        same = [other for other in left if says(relation, other) == says(relation, now)]
        if now["id"] not in {loop["id"] for loop in moves.looped}:
            assert same
            assert max(other["confidence"] for other in same) >= row["confidence"]
    return moves


@given(links())
def test_links_move_collapse_or_go(rows: list[Row]) -> None:
    moves = check(LINKS, rows)
    assert {row["id"] for row in moves.looped} == {
        row["id"] for row in rows if row["layer"] == "entity" and {row["entity_id"], row["target_id"]} == {SOURCE, INTO}
    }
    assert moves.counts.keys() == {row["id"] for row in moves.moved}


@given(edges())
def test_edges_move_or_collapse_and_lose_no_count(rows: list[Row]) -> None:
    moves = check(EDGES, rows)
    assert moves.looped == []
    gone = {row["id"] for row in moves.gone}
    before = {row["id"]: row["co_reference_count"] for row in rows}
    assert sum((before | moves.counts)[ident] for ident in before if ident not in gone) == sum(before.values())


def test_of_equally_confident_ones_the_one_that_was_there_stays() -> None:
    shared = {"type": "A", "source_memory_id": UUID(int=7), "source_entity_id": None, "target_memory_id": None}
    common = {**shared, "confidence": 0.5, "co_reference_count": MOST_REFERENCES, "version": 1}
    mine = {**common, "id": UUID(int=100), "target_entity_id": SOURCE, "created_at": NOW}
    theirs = {**common, "id": UUID(int=101), "target_entity_id": INTO, "created_at": NOW + timedelta(1)}
    moves = plan_moves(EDGES, [mine, theirs], SOURCE, INTO)
    assert (moves.moved, moves.gone, moves.counts) == ([], [mine], {})  # a count that can't grow is no change
