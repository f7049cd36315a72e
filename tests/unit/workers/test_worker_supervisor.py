"""An actor that dies is started again; a stop ends it."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from psycopg import OperationalError

from memory_os_workers import supervisor
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio


class Context:
    """As much of a worker as the supervisor asks for."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.source = random.Random(1)
        self.pauses: list[float] = []

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad"),
        BaseExceptionGroup("group", [ValueError("inner")]),
        OperationalError("gone"),
        GeneratorExit(),
    ],
)
async def test_an_actor_is_started_again_whatever_it_raises(error: BaseException) -> None:
    context = Context()
    runs = 0

    async def actor(given: Any) -> None:
        nonlocal runs
        assert given is context
        runs += 1
        if runs < 4:
            raise error
        context.stopping.set()

    await supervisor.keep_running(cast("WorkerContext", context), "actor", actor)
    assert runs == 4
    assert len(context.pauses) == 3
    assert all(0 <= pause <= supervisor.LAST_WAIT_S for pause in context.pauses)


async def test_a_cancelled_supervisor_ends() -> None:
    context = SimpleNamespace(stopping=asyncio.Event(), source=random.Random(1))
    started = asyncio.Event()

    async def actor(_: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(supervisor.keep_running(cast("WorkerContext", context), "actor", actor))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
