"""The supervisor: keeps the actors of a worker running, and starts one that died again after a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from memory_os.outbox.backoff import full_jitter
from memory_os.storage.database import is_connection_loss
from memory_os_workers.context import WorkerContext

log = structlog.get_logger(__name__)

Actor = Callable[[WorkerContext], Awaitable[None]]

FIRST_WAIT_S = 0.5
LAST_WAIT_S = 10.0
CALM_S = 30.0
"""An actor that ran this long before it died is started again as if for the first time."""


async def keep_running(context: WorkerContext, name: str, actor: Actor) -> None:
    """Run an actor until the worker stops, whatever it raises: one bad event may not end all projection."""
    deaths = 0
    clock = asyncio.get_running_loop().time
    while not context.stopping.is_set():
        started = clock()
        try:
            await actor(context)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if isinstance(error, SystemExit | KeyboardInterrupt):
                raise
            deaths = 1 if clock() - started > CALM_S else deaths + 1
            wait = full_jitter(deaths, FIRST_WAIT_S, LAST_WAIT_S, context.source)
            told = {"actor": name, "error_class": type(error).__name__, "restart_in_s": round(wait, 2)}
            if _all_connection_loss(error):
                log.warning("actor_died", **told)
            else:
                log.exception("actor_died", **told)
            await context.pause(wait)


def _all_connection_loss(error: BaseException) -> bool:
    """Whether nothing but the database's absence stands behind an error; a task group wraps several."""
    if isinstance(error, BaseExceptionGroup):
        return all(_all_connection_loss(inner) for inner in error.exceptions)
    return is_connection_loss(error)
