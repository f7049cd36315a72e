"""Where what was erased may still be named, and where not."""

from __future__ import annotations

import json

import pytest

from memory_os.erasure.verifying import Wanted, leftovers
from memory_os.errors import StartupError

GONE = "01a22e74-1a10-72ed-93af-a78ea9eb9b57"


@pytest.mark.parametrize(
    ("table", "row", "found"),
    [
        ("memories", {"id": GONE}, ["id"]),
        ("memories", {"id": "another"}, []),
        ("graph_tombstones", {"aggregate_id": GONE}, []),
        ("audit_log", {"target_id": GONE, "detail": {"records": [GONE]}}, []),
        ("audit_log", {"target_id": GONE, "user_id": GONE}, ["user_id"]),
        ("erasures", {"record_ids": [GONE], "places": [{"place": GONE}]}, ["places"]),
        ("outbox_events", {"event_type": "GRAPH_DELETE", "aggregate_id": GONE, "payload": {}}, []),
        ("outbox_events", {"event_type": "GRAPH_DELETE", "aggregate_id": GONE, "payload": {"a": GONE}}, ["payload"]),
        ("outbox_events", {"event_type": "GRAPH_UPSERT", "aggregate_id": GONE}, ["aggregate_id"]),
        ("memory_acts", {"before": {"edges": [{"end": GONE}]}}, ["before"]),
    ],
    ids=str,
)
def test_ids_are_allowed_where_they_tell_of_a_deletion_alone(
    table: str, row: dict[str, object], found: list[str]
) -> None:
    wanted = Wanted(frozenset({GONE}))
    assert leftovers(table, json.dumps(row), wanted) == found


@pytest.mark.parametrize("text", ['Ann\'s "50%" \\ müsli', "ZANZIBAR", "日本\n語"], ids=["quotes", "capitals", "lines"])
def test_a_text_is_allowed_nowhere_however_it_is_written(text: str) -> None:
    wanted = Wanted.of([], text)
    for table in ("audit_log", "erasures"):
        for held in (f"about {text}.", text.lower(), {"deep": [text]}, f"\\x00{text.encode().hex()}ff"):
            row = json.dumps({"detail": held, "other": "nothing"}, ensure_ascii=False)
            assert leftovers(table, row, wanted) == ["detail"]
        assert leftovers(table, json.dumps({"detail": "something else"}), wanted) == []


def test_a_blank_text_is_refused() -> None:
    with pytest.raises(StartupError):
        Wanted.of([], " \n")
