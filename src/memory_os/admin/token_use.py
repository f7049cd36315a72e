"""When a token was last used: kept about a minute exact, for next to nothing, and never at the cost of a request."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

import structlog

from memory_os.storage.database import Database, Scope

log = structlog.get_logger(__name__)

INTERVAL_S = 60.0
"""Seconds within which a token's further uses are not written again; `touch_token.sql` holds other processes to it."""

_TIMEOUT_S = 1.0
_MOST_REMEMBERED = 10_000
_written: dict[UUID, float] = {}


async def note_use(database: Database, tenant_id: UUID, token_id: UUID) -> None:
    """Write down that a token was used, unless this process has done so within the last minute.

    A failure is logged and otherwise passed over: the request that comes with the token must not pay for it.
    """
    now = time.monotonic()
    last = _written.get(token_id)
    if last is not None and now - last < INTERVAL_S:
        return
    if len(_written) >= _MOST_REMEMBERED:
        _written.clear()  # costs one further write a token
    _written[token_id] = now  # before the write, so that neither a crowd of requests nor a failure repeats it
    parameters = {"tenant_id": tenant_id, "token_id": token_id}
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await database.run(Scope("memory_os_app", tenant_id), lambda tx: tx.touched("touch_token", parameters))
    except Exception as error:  # noqa: BLE001 - whatever it is, the request goes on
        log.warning("token_use_not_noted", error_class=type(error).__name__)
