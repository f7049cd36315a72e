"""What a correction must satisfy: its own shape, and that it says something new of its memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from msgspec import UNSET

from memory_os.checking import check_word, moment_faults, text_faults, unknown_term, window_faults
from memory_os.corrections.model import CorrectionDraft, Proposal
from memory_os.domain.corrections import CORRECTION_KINDS
from memory_os.domain.labels import check_label, check_transition
from memory_os.domain.own_packs import is_own_pack
from memory_os.domain.vocabulary import VocabularyError
from memory_os.errors import ConflictError, FieldError, InvalidInputError, OwnPackError
from memory_os.memories.correcting import is_settled
from memory_os.memories.model import Memory

TIMES: Final = ("occurred_at", "valid_from", "valid_to")

_FIELDS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = MappingProxyType(
    {
        "replace_text": (("text",), ()),
        "wrong_label": (("label",), ()),
        "wrong_entity": (("from", "to"), ("text",)),
        "wrong_date": ((), TIMES),
        "dispute": ((), ("against",)),
        "retract": ((), ()),
    }
)
"""What the proposal of each kind must have, and what it may have."""

_NAMES: Final = {"from": "former", "to": "meant"}


def given_in(proposal: Proposal) -> dict[str, Any]:
    """The fields that a proposal has, under the names that clients know."""
    names = {_NAMES.get(name, name): name for name in ("text", "label", "from", "to", *TIMES, "against")}
    values = {name: getattr(proposal, attribute) for attribute, name in names.items()}
    return {name: value for name, value in values.items() if value is not UNSET}


def check_shape(draft: CorrectionDraft, *, max_text_chars: int) -> None:
    """Check what can be told without the memory.

    Raises:
        UnknownTermError: If the kind, or the label that is proposed, is not in the vocabulary.
        InvalidInputError: With a pointer for each fault.
        OwnPackError: If the text that is proposed is a context pack of ours.
    """
    check_word("/kind", draft.kind, CORRECTION_KINDS, noun="kind of correction")
    given, proposal = given_in(draft.proposal), draft.proposal
    faults = text_faults(draft, ("reason",), solid=("reason",))
    faults += _misplaced(draft.kind, given)
    inner = [*text_faults(proposal, ("text",), solid=("text",)), *moment_faults(proposal, TIMES)]
    if isinstance(proposal.text, str) and len(proposal.text) > max_text_chars:
        inner.append(FieldError("/text", f"must have at most {max_text_chars} characters"))
    if "from" in given and given["from"] == given.get("to"):
        inner.append(FieldError("/to", "must be another entity than from"))
    if given.get("against") == draft.target:
        inner.append(FieldError("/against", "a memory can't contradict itself"))
    faults += in_proposal(inner)
    if faults:
        raise InvalidInputError("the correction can't be proposed like that", errors=faults)
    if "label" in given:
        try:
            check_label(given["label"])
        except VocabularyError as error:
            raise unknown_term(error, "/proposal/label") from None
    if "text" in given and is_own_pack(given["text"]):
        fault = FieldError("/proposal/text", "say it in your own words, not as you were shown it")
        raise OwnPackError("the text holds a context pack that this memory has given", errors=[fault])


def is_whole(kind: str, proposal: Proposal) -> bool:
    """Whether a stored proposal still has what its kind needs: what it said may have been erased."""
    return not _misplaced(kind, given_in(proposal))


def in_proposal(faults: list[FieldError]) -> list[FieldError]:
    """Faults of a proposal's fields as faults of the body."""
    return [FieldError(f"/proposal{fault.pointer}", fault.detail) for fault in faults]


def _misplaced(kind: str, given: Mapping[str, Any]) -> list[FieldError]:
    needed, possible = _FIELDS[kind]
    faults = [FieldError(f"/{name}", f"a {kind} needs it") for name in needed if name not in given]
    faults += [
        FieldError(f"/{name}", f"does not belong to a {kind}") for name in given if name not in needed + possible
    ]
    if kind == "wrong_date" and given.keys().isdisjoint(TIMES):
        faults.append(FieldError("", f"needs at least one of {', '.join(TIMES)}"))
    return in_proposal(faults)


def repetitions(memory: Memory, kind: str, proposal: Proposal) -> list[FieldError]:
    """What a proposal says that the memory says already, or that can't be said of it; pointers into the proposal."""
    given = given_in(proposal)
    if kind in ("replace_text", "wrong_label"):
        return [FieldError(f"/{name}", "says what is there") for name in given if given[name] == getattr(memory, name)]
    if kind != "wrong_date":
        return []
    faults = [FieldError(f"/{name}", "says what is there") for name in given if given[name] == getattr(memory, name)]
    times: dict[str, datetime | None] = {name: given.get(name, getattr(memory, name)) for name in TIMES}
    return faults + window_faults(times["valid_from"], times["valid_to"])


def check_standing(memory: Memory, kind: str, proposal: Proposal, *, version: int) -> None:
    """Check that a memory can be corrected as it stands now.

    Args:
        memory: The memory.
        kind: What kind of correction.
        proposal: What it proposes.
        version: The version of the memory that the correction was said of.

    Raises:
        ConflictError: That names what has happened to it: it was superseded or retracted, or its status is in the way.
    """
    ended = memory.status == "superseded" and (kind != "retract" or memory.version != version)
    if memory.status == "retracted" or ended:
        by: dict[str, UUID | None] = {"superseded_by": memory.superseded_by} if ended else {}
        raise ConflictError(
            f"the memory has been {memory.status}, and can't be corrected any more",
            extra={name: str(value) for name, value in by.items() if value is not None},
        )
    if memory.status == "archived" and kind != "retract":
        raise ConflictError("the memory has been archived: restore it before it is corrected")
    if kind == "dispute" and memory.status == "disputed" and proposal.against is not UNSET:
        return
    try:
        check_transition(memory.label, memory.status, _status_after(memory, kind, proposal))
    except VocabularyError as error:
        raise ConflictError(f"the memory can't be corrected like that: {error.detail}") from None


def _status_after(memory: Memory, kind: str, proposal: Proposal) -> str:
    if kind in ("dispute", "retract"):
        return "disputed" if kind == "dispute" else "retracted"
    label = memory.label if proposal.label is UNSET else proposal.label
    return "retracted" if is_settled(memory.label, label) else "superseded"
