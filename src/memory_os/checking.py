"""Checks that every area makes of what a client brings; each fault is a pointer and a sentence.

Faults are collected, so that one answer names all of them; only a word outside a vocabulary is refused at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from memory_os.domain.audiences import Readable, ReaderLists
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import PAYLOAD_BYTES, check_moment, check_payload, check_text
from memory_os.domain.vocabulary import VocabularyError, refuse
from memory_os.errors import FieldError, InvalidInputError, PreconditionFailedError, UnknownTermError


def unknown_term(error: VocabularyError, pointer: str) -> UnknownTermError:
    """A vocabulary's refusal as the answer a model can correct itself from."""
    extra: dict[str, Any] = {"allowed": list(error.allowed)}
    if error.did_you_mean:
        extra["did_you_mean"] = error.did_you_mean
    return UnknownTermError(str(error), errors=[FieldError(pointer, error.detail)], extra=extra)


def check_word(pointer: str, value: object, allowed: Iterable[str], *, noun: str) -> None:
    """Hold a word against a closed list; anything that is no text (None, UNSET) passes.

    Raises:
        UnknownTermError: With the list, and the nearest word on it.
    """
    words = tuple(allowed)
    if isinstance(value, str) and value not in words:
        raise unknown_term(refuse(pointer.rpartition("/")[2], value, words, noun=noun), pointer)


def check_version(given: int | None, stored: int) -> None:
    """Hold an `If-Match` against the stored version.

    Raises:
        PreconditionFailedError: If they differ; None is "whatever it is".
    """
    if given is not None and given != stored:
        raise PreconditionFailedError(f"the record is at version {stored}, not {given}: read it again")


def parse_moment(name: str, value: str | None) -> datetime | None:
    """A time that came as a query parameter; None passes.

    Raises:
        InvalidInputError: If it is not RFC 3339, has no offset, or can't be held.
    """
    if value is None:
        return None
    try:
        moment = msgspec.convert(value, datetime)
        fault = check_moment(moment)
    except msgspec.ValidationError:
        fault = "must be RFC 3339, for example 2026-01-31T12:00:00Z"
    if fault:
        raise InvalidInputError("the request does not fit the call", errors=[FieldError(f"/{name}", fault)])
    return moment


def text_faults(shape: object, fields: Iterable[str], *, solid: Iterable[str] = ()) -> list[FieldError]:
    """Faults of a shape's texts.

    Args:
        shape: The draft or patch.
        fields: Its texts; what is no text (None, UNSET, a field that it lacks) passes.
        solid: Those of them that must not be blank.
    """
    faults = []
    for field in fields:
        value = getattr(shape, field, None)
        if not isinstance(value, str):
            continue
        if fault := check_text(value):
            faults.append(FieldError(f"/{field}", fault))
        elif field in solid and not value.strip():
            faults.append(FieldError(f"/{field}", "must not be blank"))
    return faults


def moment_faults(shape: object, fields: Iterable[str]) -> list[FieldError]:
    """Faults of a shape's times; what is no time passes."""
    return [
        FieldError(f"/{field}", fault)
        for field in fields
        if isinstance(value := getattr(shape, field), datetime) and (fault := check_moment(value))
    ]


def payload_faults(value: object, pointer: str) -> list[FieldError]:
    """Faults of a free JSON object; what is none passes."""
    if not isinstance(value, dict):
        return []
    if fault := check_payload(value):
        return [FieldError(pointer, fault)]
    if len(msgspec.json.encode(value)) > PAYLOAD_BYTES:
        return [FieldError(pointer, f"must have at most {PAYLOAD_BYTES} bytes")]
    return []


def window_faults(start: datetime | None, end: datetime | None) -> list[FieldError]:
    """The fault of a window that ends before it begins; None is open, and an empty window is legal."""
    if start is not None and end is not None and start > end:
        return [FieldError("/valid_to", "must not lie before valid_from")]
    return []


def reader_faults(
    principal: Principal,
    *,
    owner: str | None,
    visibility: str,
    users: Sequence[str],
    groups: Sequence[str],
    named: bool,
) -> list[FieldError]:
    """Faults of who may read a record. Nobody writes what they could not read back: row-level security forbids it.

    Args:
        principal: Who writes.
        owner: The record's own user.
        visibility: The record's visibility after the write.
        users: The readers of a `restricted` record after the write.
        groups: Likewise.
        named: Whether this request names readers.
    """
    faults = [
        FieldError(f"/readers/{kind}/{index}", fault)
        for kind, names in (("users", users), ("groups", groups))
        for index, name in enumerate(names)
        if (fault := check_text(name))
    ]
    if named and visibility != "restricted":
        faults.append(FieldError("/readers", "readers belong to visibility restricted"))
    own = owner is not None and owner == principal.user_id
    if visibility == "private" and not own:
        words = "a private record needs an acting user (user_id or X-Memory-User)"
        if owner is not None or principal.user_id is not None:
            words = "only a record's own user can make it private"
        faults.append(FieldError("/visibility", words))
    listed = principal.user_id in users or not set(groups).isdisjoint(principal.groups)
    if visibility == "restricted" and not own and not listed:
        faults.append(
            FieldError("/readers", "the caller must be among the readers: act for a user or a group that may read it")
        )
    return faults


class ReaderPatch(Protocol):
    """A change that may change who reads a record."""

    @property
    def visibility(self) -> str | UnsetType:
        """The new visibility, or UNSET."""

    @property
    def readers(self) -> ReaderLists | UnsetType:
        """The new readers, or UNSET."""


def new_reader_faults(principal: Principal, visibility: str, readers: ReaderLists | None) -> list[FieldError]:
    """Faults of who may read a record that its writer is about to store; see `reader_faults`."""
    return reader_faults(
        principal,
        owner=principal.user_id,
        visibility=visibility,
        users=[] if readers is None else readers.users,
        groups=[] if readers is None else readers.groups,
        named=readers is not None,
    )


def changed_reader_faults(principal: Principal, patch: ReaderPatch, current: Readable) -> list[FieldError]:
    """Faults of who may read a record after a change; see `reader_faults`."""
    readers = current.readers if isinstance(patch.readers, UnsetType) else patch.readers
    return reader_faults(
        principal,
        owner=current.user_id,
        visibility=current.visibility if isinstance(patch.visibility, UnsetType) else patch.visibility,
        users=readers.users,
        groups=readers.groups,
        named=patch.readers is not UNSET,
    )
