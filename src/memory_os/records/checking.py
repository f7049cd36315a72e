"""What a record must satisfy before it is stored."""

from __future__ import annotations

from msgspec import UNSET

from memory_os.checking import check_word, payload_faults, reader_faults, text_faults
from memory_os.domain.principal import Principal
from memory_os.errors import InvalidInputError
from memory_os.memories.model import Readers
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
    readers = draft.readers or Readers()
    faults = [
        *text_faults(draft, _TEXTS, solid=_SOLID),
        *payload_faults(draft.payload, "/payload"),
        *reader_faults(
            principal,
            owner=principal.user_id,
            visibility=draft.visibility,
            users=readers.users,
            groups=readers.groups,
            named=draft.readers is not None,
        ),
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
    readers = current.readers if patch.readers is UNSET else patch.readers
    faults = [
        *text_faults(patch, _TEXTS, solid=_SOLID),
        *payload_faults(patch.payload, "/payload"),
        *reader_faults(
            principal,
            owner=current.user_id,
            visibility=current.visibility if patch.visibility is UNSET else patch.visibility,
            users=readers.users,
            groups=readers.groups,
            named=patch.readers is not UNSET,
        ),
    ]
    if faults:
        raise InvalidInputError("the change can't be made as it is", errors=faults)


def check_status(status: object) -> None:
    """Check a status where one is given.

    Raises:
        UnknownTermError: If it is none.
    """
    check_word("/status", status, RECORD_STATUSES, noun="status of records")
