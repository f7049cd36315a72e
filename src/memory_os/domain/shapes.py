"""Types that every area's shapes are built from: bounded text, confidence, aware moments, payloads."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta

NO_NUL = r"^[^\x00]*$"
"""Postgres can't hold U+0000, so it is refused at the door."""

USER_PATTERN = r"^[^\x00-\x1f]*$(?!\n)"
"""Users travel in headers too, which hold no control characters; `$` alone would let Python pass a last newline."""

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=NO_NUL)]
Title = Annotated[str, Meta(min_length=1, max_length=500, pattern=NO_NUL)]
Key = Annotated[str, Meta(min_length=1, max_length=200, pattern=NO_NUL)]
UserId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=USER_PATTERN,
        description="Any text without control characters; compared literally, never as a pattern.",
    ),
]
Confidence = Annotated[float, Meta(ge=0, le=1)]
Moment = Annotated[
    datetime,
    Meta(
        tz=True, description="RFC 3339 with an offset; a naive time is refused.", examples=["2026-01-31T12:00:00+01:00"]
    ),
]
Payload = dict[str, Any]
Tags = Annotated[list[Key], Meta(max_length=64)]
Cursor = Annotated[str, Meta(max_length=1024)]


def one_of(words: Iterable[str]) -> Meta:
    """Shows in the OpenAPI document which words a text may be; who reads it refuses others with the nearest one."""
    return Meta(max_length=64, extra_json_schema={"enum": list(words)})


PAYLOAD_DEPTH = 32
PAYLOAD_BYTES = 65_536


def check_text(value: str) -> str | None:
    """What is wrong with a text that Postgres or a prompt can't hold, or None.

    Lone surrogates can't be encoded as UTF-8; U+0000 can't be stored.
    """
    if "\x00" in value:
        return "must not contain U+0000"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return "must not contain lone surrogates"
    return None


def check_payload(value: Any, depth: int = 0) -> str | None:  # noqa: ANN401 - any JSON value
    """What is wrong with a JSON value, or None: depth, U+0000 and lone surrogates in keys and texts."""
    if depth > PAYLOAD_DEPTH:
        return f"must not be nested deeper than {PAYLOAD_DEPTH}"
    if isinstance(value, str):
        return check_text(value)
    children: list[Any] = []
    if isinstance(value, dict):
        children = [*value.keys(), *value.values()]
    elif isinstance(value, list):
        children = value
    for child in children:
        if fault := check_payload(child, depth + 1):
            return fault
    return None


def check_moment(value: datetime) -> str | None:
    """What is wrong with a moment, or None: it must stay within years 1 to 9999 in UTC."""
    offset = value.utcoffset()
    if offset is None:
        return "needs an offset, for example 2026-01-31T12:00:00Z"
    try:
        value.replace(tzinfo=None) - offset
    except OverflowError:
        return "must lie within the years 0001 and 9999 in UTC"
    return None
