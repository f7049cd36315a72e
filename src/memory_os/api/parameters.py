"""Query parameters that many calls share."""

from __future__ import annotations

from typing import Annotated

from litestar.params import QueryParameter

from memory_os.domain.shapes import NO_NUL, USER_PATTERN
from memory_os.outbox.waiting import WAIT_MS

Limit = int

LIMIT = QueryParameter(ge=1, le=200, description="Rows on one page, 1 to 200.")
CURSOR = QueryParameter(max_length=1024, min_length=1, description="Go on after the page that gave this cursor.")
TENANT = QueryParameter(description="For the instance's root: the tenant that is meant. Others leave it out.")
WAIT_FOR = QueryParameter(ge=0, le=2**63 - 1, description="The position of a write that the graph should have reached.")
TIMEOUT_MS = QueryParameter(ge=0, le=WAIT_MS, description="How long to wait for it.")
KeyParameter = Annotated[str | None, QueryParameter(min_length=1, max_length=200, pattern=NO_NUL)]
UserParameter = Annotated[str | None, QueryParameter(min_length=1, max_length=200, pattern=USER_PATTERN)]
"""Like `Key` and `UserId` of bodies, whose bounds Litestar does not read from a query parameter's type."""

MomentParameter = Annotated[
    str | None,
    QueryParameter(
        max_length=64,
        schema_extra={"format": "date-time"},
        description="RFC 3339 with an offset, for example 2026-01-31T12:00:00Z.",
    ),
]
"""Parsed by `parse_moment`: Litestar would take a number for the seconds since 1970."""
