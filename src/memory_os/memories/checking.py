"""What a memory must satisfy before it is stored: the rules of vocabulary, time, visibility and text."""

from __future__ import annotations

from msgspec import UNSET

from memory_os.checking import (
    changed_reader_faults,
    moment_faults,
    new_reader_faults,
    payload_faults,
    text_faults,
    unknown_term,
    window_faults,
)
from memory_os.domain.acts import CALLS
from memory_os.domain.edge_types import check_edge_type
from memory_os.domain.labels import check_label, check_transition
from memory_os.domain.own_packs import is_own_pack
from memory_os.domain.principal import Principal
from memory_os.domain.vocabulary import VocabularyError
from memory_os.errors import FieldError, InvalidInputError, OwnPackError
from memory_os.memories.model import Memory, MemoryDraft, MemoryPatch, NodeAddress
from memory_os.sources.inheriting import DEFAULT
from memory_os.sources.resolving import evidence_faults

_MOMENTS = ("occurred_at", "valid_from", "valid_to")
_TEXTS = ("text", "title", "subject", "property", "conversation_id", "origin")


def check_draft(draft: MemoryDraft, principal: Principal, *, max_text_chars: int) -> None:
    """Check a draft before it is embedded and stored.

    Raises:
        InvalidInputError: With a pointer for each fault.
        UnknownTermError: If its label or the type of one of its edges is not in the vocabulary.
        OwnPackError: If its text is a context pack of ours.
    """
    try:
        check_label(draft.label)
    except VocabularyError as error:
        raise unknown_term(error, "/label") from None
    for index, edge in enumerate(draft.edges):
        try:
            check_edge_type(edge.type)
        except VocabularyError as error:
            raise unknown_term(error, f"/edges/{index}/type") from None
    faults = _field_faults(draft, max_text_chars)
    faults += [
        FieldError(f"/edges/{index}/to", "needs exactly one of memory and entity")
        for index, edge in enumerate(draft.edges)
        if isinstance(edge.to, NodeAddress) and (edge.to.memory is None) == (edge.to.entity is None)
    ]
    faults += evidence_faults(draft.evidence)
    # What it inherits from its sources the writer may read.
    faults += new_reader_faults(principal, draft.visibility or DEFAULT, draft.readers)
    faults += window_faults(draft.valid_from, draft.valid_to)
    if faults:
        raise InvalidInputError("the memory can't be stored as it is", errors=faults)
    _refuse_own_pack(draft.text)


def check_patch(patch: MemoryPatch, current: Memory, principal: Principal, *, max_text_chars: int) -> None:
    """Check a change against the memory as it is stored now.

    Raises:
        InvalidInputError: With a pointer for each fault.
        UnknownTermError: If the new label or status is not in the vocabulary, or the transition is not legal.
        OwnPackError: If the new text is a context pack of ours.
    """
    _check_words(patch, current)
    faults = _field_faults(patch, max_text_chars)
    label = check_label(current.label)
    if label.immutable_text:
        faults += [
            FieldError(f"/{field}", f"a stored {current.label} is immutable: dispute or retract it instead")
            for field in ("text", "label", *_MOMENTS)
            if getattr(patch, field) is not UNSET
        ]
    faults += changed_reader_faults(principal, patch, current)
    faults += window_faults(
        current.valid_from if patch.valid_from is UNSET else patch.valid_from,
        current.valid_to if patch.valid_to is UNSET else patch.valid_to,
    )
    if faults:
        raise InvalidInputError("the change can't be made as it is", errors=faults)
    if isinstance(patch.text, str):
        _refuse_own_pack(patch.text)


def _refuse_own_pack(text: str) -> None:
    if is_own_pack(text):
        raise OwnPackError(
            "the text holds a context pack that this memory has given: nothing new is known by it",
            errors=[FieldError("/text", "store what you concluded in your own words, not what you were shown")],
        )


def _check_words(patch: MemoryPatch, current: Memory) -> None:
    pointer = "/label"
    try:
        label = current.label if patch.label is UNSET else check_label(patch.label).name
        if patch.status is not UNSET and patch.status != current.status:
            pointer = "/status"
            check_transition(check_label(label), current.status, patch.status)
            if call := CALLS.get(patch.status):
                fault = FieldError("/status", f"POST .../{call} does it, with all that belongs to it")
                raise InvalidInputError(f"a change can't make a memory {patch.status}", errors=[fault])
        elif label != current.label and current.status not in check_label(label).statuses:
            raise InvalidInputError(
                f"a {label} can't be {current.status}", errors=[FieldError("/label", "does not fit the status")]
            )
    except VocabularyError as error:
        raise unknown_term(error, pointer) from None


def _field_faults(shape: MemoryDraft | MemoryPatch, max_text_chars: int) -> list[FieldError]:
    faults = text_faults(shape, _TEXTS, solid=("text",))
    if isinstance(shape.text, str) and len(shape.text) > max_text_chars:
        faults.append(FieldError("/text", f"must have at most {max_text_chars} characters"))
    return [*faults, *moment_faults(shape, _MOMENTS), *payload_faults(shape.metadata, "/metadata")]
