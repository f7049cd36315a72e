"""What a source and its passages must satisfy before they are stored."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory_os.checking import (
    changed_reader_faults,
    check_word,
    moment_faults,
    new_reader_faults,
    payload_faults,
    text_faults,
)
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import check_text
from memory_os.domain.sources import SOURCE_KINDS
from memory_os.errors import FieldError, InvalidInputError
from memory_os.sources.model import LOCATOR_BYTES, PassageDraft, Source, SourceDraft, SourcePatch

_TEXTS = ("title", "uri", "author")


def check_draft(draft: SourceDraft, principal: Principal, *, max_text_chars: int) -> None:
    """Check a source before its passages are embedded and it is stored.

    Raises:
        InvalidInputError: With a pointer for each fault.
        UnknownTermError: If there is no such kind.
    """
    check_kind(draft.kind)
    faults = [
        *_field_faults(draft),
        *new_reader_faults(principal, draft.visibility, draft.readers),
        *passage_faults(draft.passages, max_text_chars),
    ]
    if faults:
        raise InvalidInputError("the source can't be stored as it is", errors=faults)


def check_patch(patch: SourcePatch, current: Source, principal: Principal) -> None:
    """Check a change against the source as it is stored now.

    Raises:
        InvalidInputError: With a pointer for each fault.
    """
    faults = _field_faults(patch) + changed_reader_faults(principal, patch, current)
    if faults:
        raise InvalidInputError("the change can't be made as it is", errors=faults)


def check_passages(drafts: Sequence[PassageDraft], *, max_text_chars: int) -> None:
    """Check passages before they are embedded and stored.

    Raises:
        InvalidInputError: With a pointer for each fault.
    """
    if faults := passage_faults(drafts, max_text_chars):
        raise InvalidInputError("the passages can't be stored as they are", errors=faults)


def check_kind(kind: str | None) -> None:
    """Check a kind where one is given.

    Raises:
        UnknownTermError: If it is none.
    """
    check_word("/kind", kind, SOURCE_KINDS, noun="kind of source")


def passage_faults(drafts: Sequence[PassageDraft], max_text_chars: int) -> list[FieldError]:
    """The faults of passages; an id stands once."""
    faults, taken = list[FieldError](), set[object]()
    for index, draft in enumerate(drafts):
        here = f"/passages/{index}"
        if fault := check_text(draft.text):
            faults.append(FieldError(f"{here}/text", fault))
        elif not draft.text.strip():
            faults.append(FieldError(f"{here}/text", "must not be blank"))
        elif len(draft.text) > max_text_chars:
            faults.append(FieldError(f"{here}/text", f"must have at most {max_text_chars} characters"))
        if draft.id in taken:
            faults.append(FieldError(f"{here}/id", "is given more than once"))
        taken |= {draft.id} - {None}
        faults += _locator_faults(draft, f"{here}/locator")
    return faults


def _locator_faults(draft: PassageDraft, pointer: str) -> list[FieldError]:
    faults = payload_faults(draft.locator, pointer)
    if not faults and len(msgspec.json.encode(draft.locator)) > LOCATOR_BYTES:
        faults.append(FieldError(pointer, f"must have at most {LOCATOR_BYTES} bytes"))
    return faults


def _field_faults(shape: SourceDraft | SourcePatch) -> list[FieldError]:
    faults = text_faults(shape, _TEXTS, solid=_TEXTS)
    return [*faults, *moment_faults(shape, ("source_date",)), *payload_faults(shape.metadata, "/metadata")]
