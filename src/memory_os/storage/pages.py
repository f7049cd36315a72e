"""Keyset pages: lists go on after the last row seen, never by offset."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Select, tuple_

from memory_os.errors import FieldError, InvalidInputError

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], omit_defaults=False):
    """One page of a list. `next_cursor` is null on the last one."""

    items: list[T]
    next_cursor: str | None = None


def encode_cursor(moment: datetime, key: UUID | int) -> str:
    """An opaque cursor that stands after the row with this time and key."""
    return base64.urlsafe_b64encode(f"{moment.isoformat()}|{key}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> tuple[datetime, str]:
    """The time and key that a cursor stands after.

    Raises:
        InvalidInputError: If it is not one of ours.
    """
    try:
        moment, key = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split("|")
        when = datetime.fromisoformat(moment).astimezone(UTC)
    except (OverflowError, binascii.Error, ValueError, UnicodeError):
        raise InvalidInputError(
            "the cursor is not one that this list gave out", errors=[FieldError("/cursor", "unknown cursor")]
        ) from None
    return when, key


def decode_uuid_cursor(cursor: str) -> tuple[datetime, UUID]:
    """Like `decode_cursor`, for lists whose key is a UUID."""
    moment, key = decode_cursor(cursor)
    try:
        return moment, UUID(key)
    except ValueError:
        raise InvalidInputError(
            "the cursor is not one that this list gave out", errors=[FieldError("/cursor", "unknown cursor")]
        ) from None


def newest_first(
    statement: Select[Any], moment: ColumnElement[Any], key: ColumnElement[Any], cursor: str | None, limit: int
) -> Select[Any]:
    """Order a select by time and key, newest first, from after `cursor`, one row more than `limit`."""
    if cursor is not None:
        statement = statement.where(tuple_(moment, key) < tuple_(*decode_uuid_cursor(cursor)))
    return statement.order_by(moment.desc(), key.desc()).limit(limit + 1)


def cut(rows: Sequence[T], limit: int, cursor_of: Any) -> tuple[Sequence[T], str | None]:  # noqa: ANN401 - a key function
    """The first `limit` rows, and the cursor after them if there are more."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], cursor_of(rows[limit - 1])
