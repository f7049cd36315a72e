"""Taking acts back, one by one: what was before them, and what nobody can know."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from memory_os.domain.principal import Principal
from memory_os.retrieval.rewinding import PastAct, in_force, past_act, rewind, touched_since

MEMORY, ACT, UNDO = UUID(int=1), UUID(int=2), UUID(int=3)
ANYBODY = Principal(UUID(int=9), "reader")
ROW: dict[str, Any] = {"id": MEMORY, "text": "now", "status": "active", "valid_to": None, "superseded_by": None}
MARCH = datetime(2026, 3, 1, tzinfo=UTC)
APRIL = datetime(2026, 4, 1, tzinfo=UTC)


def act(kind: str = "archive", *, ident: UUID = ACT, undone: str | None = None, **before: Any) -> PastAct:
    states = {str(MEMORY): before} if before else None
    return PastAct(ident, kind, draft=False, states=states, audiences=[], undone=undone)


def test_acts_are_taken_back_the_newest_first() -> None:
    acts = [
        act(status="archived"),
        act("change", text="before that"),
        act(status="disputed", valid_to="2026-03-01T00:00:00Z"),
    ]
    then = rewind(ROW, acts, ANYBODY)
    assert then is not None
    assert (then["text"], then["status"], then["valid_to"]) == ("before that", "disputed", MARCH)
    assert ROW["text"] == "now"


def test_ids_and_nothing_come_back_as_what_they_were() -> None:
    then = rewind({**ROW, "superseded_by": ACT, "valid_to": APRIL}, [act(superseded_by=None, valid_to=None)], ANYBODY)
    assert then == ROW
    then = rewind(ROW, [act(superseded_by=str(ACT))], ANYBODY)
    assert then is not None
    assert then["superseded_by"] == ACT


def test_what_an_answer_does_not_show_is_left_alone() -> None:
    assert rewind(ROW, [act("change", tags=["a"], exact_key="\\x00")], ANYBODY) == ROW


def test_content_is_told_to_who_could_read_it_then() -> None:
    changed = PastAct(
        ACT,
        "change",
        draft=False,
        states={str(MEMORY): {"text": "secret"}},
        audiences=[{"everybody": False, "users": ["ann"], "groups": []}],
        undone=None,
    )
    assert rewind(ROW, [changed], ANYBODY) is None
    then = rewind(ROW, [changed], Principal(UUID(int=9), "reader", user_id="ann"))
    assert then is not None
    assert then["text"] == "secret"


def test_a_change_of_readers_alone_hides_nothing() -> None:
    changed = PastAct(
        ACT,
        "change",
        draft=False,
        states={str(MEMORY): {"visibility": "private"}},
        audiences=[{"everybody": False, "users": ["ann"], "groups": []}],
        undone=None,
    )
    assert rewind(ROW, [changed], ANYBODY) == ROW


def test_an_undo_that_kept_nothing_is_known_only_where_its_act_is_taken_back_too() -> None:
    undo = act("undo", ident=UNDO, undone=str(ACT))
    assert rewind(ROW, [undo], ANYBODY) is None
    then = rewind(ROW, [undo, act(status="disputed")], ANYBODY)
    assert then is not None
    assert then["status"] == "disputed"


def test_an_act_comes_from_its_row() -> None:
    row = {"id": ACT, "kind": "merge", "memory_id": MEMORY, "other_id": None, "audiences": None, "undone": None}
    row |= {"states": None, "changed": None, "confidence": 0.4}
    merged = past_act(row)
    assert merged.draft
    assert merged.states == {str(MEMORY): {"confidence": 0.4}}
    stepped = past_act({**row, "kind": "archive", "states": [{"id": str(MEMORY), "status": "active"}]})
    assert stepped.states == {str(MEMORY): {"id": str(MEMORY), "status": "active"}}
    assert past_act({**row, "kind": "undo", "confidence": None}).states is None


def test_windows_are_half_open() -> None:
    def held(status: str, start: datetime | None, end: datetime | None, *, history: bool = False) -> bool:
        return in_force({"status": status, "valid_from": start, "valid_to": end}, MARCH, history=history)

    assert held("active", None, None)
    assert held("active", MARCH, APRIL)
    assert not held("active", APRIL, None)
    assert not held("active", None, MARCH)
    assert held("superseded", None, APRIL)
    assert not held("superseded", None, None)
    assert not held("archived", None, None)
    assert held("archived", None, None, history=True)
    assert not held("archived", APRIL, None, history=True)


def test_an_edge_was_elsewhere_if_its_act_did_not_hold_then_as_it_does_now() -> None:
    def touched(at: datetime, undone_at: datetime | None) -> set[str]:
        return touched_since([{"at": at, "undone_at": undone_at, "concerned": ["edge"]}], MARCH)

    february, may = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
    assert touched(APRIL, None) == {"edge"}
    assert touched(APRIL, may) == set()
    assert touched(february, APRIL) == {"edge"}
    assert touched(february, None) == set()
