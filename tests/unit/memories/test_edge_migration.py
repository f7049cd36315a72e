"""Which context edges move when one memory takes the place of another, and which become one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from memory_os.entities.moving import Row, plan_moves
from memory_os.memories.migrating import CONTEXT

OLD, NEW, FAR = UUID(int=1), UUID(int=2), UUID(int=3)
THING = UUID(int=9)
NOW = datetime(2026, 1, 31, tzinfo=UTC)


@st.composite
def edges(draw: st.DrawFn) -> list[Row]:
    """Edges of the old memory, and of the new one, each claim once; none between the two."""
    rows: dict[tuple[object, ...], Row] = {}
    for number in range(draw(st.integers(0, 12))):
        near, outward, to_thing = draw(st.sampled_from([OLD, NEW])), draw(st.booleans()), draw(st.booleans())
        ends: dict[str, Any] = dict.fromkeys(
            ("source_memory_id", "source_entity_id", "target_memory_id", "target_entity_id")
        )
        here, there = ("source", "target") if outward else ("target", "source")
        ends[f"{here}_memory_id"] = near
        ends[f"{there}_{'entity' if to_thing else 'memory'}_id"] = THING if to_thing else FAR
        type_ = draw(st.sampled_from(["ABOUT", "SUPPORTS"]))
        rows[type_, *ends.values()] = {
            **ends,
            "id": UUID(int=100 + number),
            "type": type_,
            "confidence": draw(st.sampled_from([0.0, 0.5, 1.0])),
            "co_reference_count": draw(st.integers(0, 5)),
            "created_at": NOW + timedelta(number),
            "version": 1,
        }
    return list(rows.values())


def _claim(row: Row) -> tuple[object, ...]:
    """What an edge says once it is at the new memory."""
    ends = (NEW if row[end] == OLD else row[end] for end in CONTEXT.ends)
    return (*ends, *(row[name] for name in CONTEXT.same))


@given(edges())
def test_all_end_at_the_new_memory_and_each_claim_is_made_once(rows: list[Row]) -> None:
    plan = plan_moves(CONTEXT, rows, OLD, NEW)
    gone = {row["id"] for row in plan.gone}
    left = [row for row in rows if row["id"] not in gone]
    assert len({_claim(row) for row in left}) == len(left)
    assert {_claim(row) for row in left} == {_claim(row) for row in rows}
    moved = {row["id"] for row in plan.moved}
    assert moved == {row["id"] for row in left if OLD in (row["source_memory_id"], row["target_memory_id"])}


@given(edges())
def test_the_one_that_was_there_stays_with_the_most_confidence_and_all_counts(rows: list[Row]) -> None:
    plan = plan_moves(CONTEXT, rows, OLD, NEW)
    for collapse in plan.collapsed:
        both = [collapse.kept, *collapse.gone]
        assert OLD not in (collapse.kept["source_memory_id"], collapse.kept["target_memory_id"])
        assert collapse.confidence == max(row["confidence"] for row in both)
        assert collapse.references == sum(row["co_reference_count"] for row in both)
    counts = {row["id"]: row["co_reference_count"] for row in rows} | plan.counts
    for row in plan.gone:
        del counts[row["id"]]
    assert sum(counts.values()) == sum(row["co_reference_count"] for row in rows)
    assert plan.looped == []
