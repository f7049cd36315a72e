"""What a correction must satisfy, without any store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from memory_os.corrections.checking import check_shape, check_standing, is_whole, repetitions
from memory_os.corrections.model import CorrectionDraft, Proposal
from memory_os.domain.corrections import CORRECTION_KINDS
from memory_os.domain.labels import LABELS
from memory_os.domain.pack_markdown import PREAMBLE
from memory_os.errors import ConflictError, InvalidInputError, OwnPackError
from memory_os.memories.model import Memory, Readers

NOW = datetime(2026, 1, 1, tzinfo=UTC)
IDS = [str(uuid4()) for _ in range(2)]
WHOLE: dict[str, dict[str, Any]] = {
    "replace_text": {"text": "Two."},
    "wrong_label": {"label": "Goal"},
    "wrong_entity": {"from": IDS[0], "to": IDS[1]},
    "wrong_date": {"valid_to": None},
    "dispute": {},
    "retract": {},
}


def memory(**values: Any) -> Memory:
    row = {
        **dict.fromkeys(Memory.__struct_fields__),
        "id": UUID(int=1),
        "text": "One.",
        "label": "Attribute",
        "layer": "identity",
        "status": "active",
        "confidence": 1.0,
        "visibility": "tenant",
        "readers": Readers(),
        "created_at": NOW,
        "updated_at": NOW,
        "version": 3,
        "tags": [],
        "metadata": {},
    }
    return Memory(**{**row, **values})


def proposal(given: dict[str, Any]) -> Proposal:
    return msgspec.convert(given, Proposal)


def draft(kind: str, given: dict[str, Any], **fields: Any) -> CorrectionDraft:
    body = {"target": str(UUID(int=1)), "kind": kind, "proposal": given, "reason": "No."}
    return msgspec.convert({**body, **fields}, CorrectionDraft)


def test_every_kind_has_a_proposal_that_will_do() -> None:
    assert WHOLE.keys() == CORRECTION_KINDS.keys()
    for kind, given in WHOLE.items():
        check_shape(draft(kind, given), max_text_chars=10)
        assert is_whole(kind, proposal(given))


@pytest.mark.parametrize("kind", [kind for kind in WHOLE if kind not in ("dispute", "retract")])
def test_what_a_kind_needs_must_be_there(kind: str) -> None:
    assert not is_whole(kind, Proposal())
    with pytest.raises(InvalidInputError):
        check_shape(draft(kind, {}), max_text_chars=10)


@pytest.mark.parametrize("kind", WHOLE)
def test_fields_of_other_kinds_are_refused_all_at_once(kind: str) -> None:
    every = {"text": "Two.", "label": "Goal", "from": IDS[0], "to": IDS[1], "against": IDS[0], "valid_to": None}
    with pytest.raises(InvalidInputError) as refused:
        check_shape(draft(kind, {**every, **WHOLE[kind]}), max_text_chars=10)
    own = {*WHOLE[kind], *{"wrong_entity": ["text"], "dispute": ["against"]}.get(kind, [])}
    assert {fault.pointer for fault in refused.value.errors} == {f"/proposal/{name}" for name in every.keys() - own}


def test_a_pack_of_ours_is_no_correction() -> None:
    with pytest.raises(OwnPackError) as refused:
        check_shape(draft("replace_text", {"text": PREAMBLE}), max_text_chars=1000)
    assert refused.value.errors[0].pointer == "/proposal/text"


def test_names_travel_as_clients_write_them() -> None:
    given = WHOLE["wrong_entity"]
    assert msgspec.to_builtins(proposal(given)) == given
    assert msgspec.to_builtins(proposal({"valid_to": None})) == {"valid_to": None}


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ("replace_text", {"text": "One."}, ["/text"]),
        ("replace_text", {"text": "one."}, []),
        ("wrong_label", {"label": "Attribute"}, ["/label"]),
        ("wrong_date", {"valid_from": None, "valid_to": "2026-01-01T01:00:00+01:00"}, ["/valid_from", "/valid_to"]),
        ("wrong_date", {"valid_from": "2026-01-02T00:00:00Z"}, ["/valid_to"]),
        ("wrong_date", {"valid_from": "2026-01-01T00:00:00Z"}, []),
        ("wrong_date", {"valid_to": None}, []),
    ],
    ids=["same text", "another case", "same label", "same times", "ends before it begins", "empty window", "open end"],
)
def test_what_is_there_already_is_nothing_new(kind: str, given: dict[str, Any], wanted: list[str]) -> None:
    assert [fault.pointer for fault in repetitions(memory(valid_to=NOW), kind, proposal(given))] == wanted


@pytest.mark.parametrize("kind", WHOLE)
def test_what_has_ended_is_corrected_no_more(kind: str) -> None:
    given = proposal(WHOLE[kind])
    check_standing(memory(), kind, given, version=1)
    with pytest.raises(ConflictError, match="has been retracted"):
        check_standing(memory(status="retracted"), kind, given, version=3)
    newer = memory(status="superseded", superseded_by=UUID(int=2))
    with pytest.raises(ConflictError, match="has been superseded") as refused:
        check_standing(newer, kind, given, version=2)
    assert refused.value.extra == {"superseded_by": str(UUID(int=2))}
    if kind == "retract":
        check_standing(newer, kind, given, version=3)  # it was said of what was superseded already


@pytest.mark.parametrize("label", LABELS)
def test_every_memory_that_is_active_can_be_corrected(label: str) -> None:
    for kind, given in WHOLE.items():
        check_standing(memory(label=label), kind, proposal(given), version=3)
        if kind != "retract":
            with pytest.raises(ConflictError):
                check_standing(memory(label=label, status="archived"), kind, proposal(given), version=3)
