"""What a record must satisfy before it is stored."""

from __future__ import annotations

from memory_os.checking import changed_reader_faults, check_word, new_reader_faults, payload_faults, text_faults
from memory_os.domain.principal import Principal
from memory_os.errors import InvalidInputError
from memory_os.records.model import RECORD_STATUSES, Record, RecordDraft, RecordPatch

_TEXTS = ("title", "summary")
_SOLID = ("title",)


def check_draft(draft: RecordDraft, principal: Principal) -> None:
    """Check a record before it is stored.

    Raises:
        InvalidInputError: With a pointer for each fault.
        UnknownTermError: If its status is none.
    """
    check_status(draft.status)
    faults = [
        *text_faults(draft, _TEXTS, solid=_SOLID),
        *payload_faults(draft.payload, "/payload"),
        *new_reader_faults(principal, draft.visibility, draft.readers),
    ]
    if faults:
        raise InvalidInputError("the record can't be stored as it is", errors=faults)


def check_patch(patch: RecordPatch, current: Record, principal: Principal) -> None:
    """Check a change against the record as it is stored now.

    Raises:
        InvalidInputError: With a pointer for each fault.
        UnknownTermError: If the new status is none.
    """
    check_status(patch.status)
    faults = [
        *text_faults(patch, _TEXTS, solid=_SOLID),
        *payload_faults(patch.payload, "/payload"),
        *changed_reader_faults(principal, patch, current),
    ]
    if faults:
        raise InvalidInputError("the change can't be made as it is", errors=faults)


def check_status(status: object) -> None:
    """Check a status where one is given.

    Raises:
        UnknownTermError: If it is none.
    """
    check_word("/status", status, RECORD_STATUSES, noun="status of records")
