"""Query parameters that many calls share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar.params import Parameter

Limit = int

LIMIT = Parameter(ge=1, le=200, description="Rows on one page, 1 to 200.")
CURSOR = Parameter(max_length=1024, min_length=1, description="Go on after the page that gave this cursor.")
MomentParameter = Annotated[
    datetime | None, Parameter(description="RFC 3339 with an offset, for example 2026-01-31T12:00:00Z.")
]
