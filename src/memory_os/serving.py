"""The API process: uvicorn around the application."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import uvicorn
import uvloop

from memory_os.api.services import Services
from memory_os.app import create_app, open_services
from memory_os.errors import StartupError
from memory_os.logging import configure_logging
from memory_os.settings import Settings
from memory_os_console import console_router
from memory_os_workers.process import open_worker, run_actors

_BACKLOG = 2048
_STOP_S = 8
"""Seconds that open requests get at a stop; the supervisor waits ten."""


def serve(settings: Settings, *, host: str | None, port: int | None, with_worker: bool) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        StartupError: If the service must not start.
    """
    configure_logging(settings)
    listener = _listen(host or settings.host, settings.port if port is None else port)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, listener, with_worker=with_worker))


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=_BACKLOG, reuse_port=False)
    except OSError as error:
        raise StartupError(f"can't listen on {host}:{port} ({error.strerror}): choose another --port") from None


async def _serve(settings: Settings, listener: socket.socket, *, with_worker: bool) -> None:
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(settings))
        if with_worker:
            await stack.enter_async_context(_worker_beside(settings, services))
        stopping = asyncio.Event()
        config = uvicorn.Config(
            create_app(services, console=[console_router(services, stopping=stopping)]),
            http="httptools",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_STOP_S,
            lifespan="on",
        )
        server = _Server(config, stopping)
        # What was loaded stays: looking through it for garbage stalls an answer by tens of milliseconds.
        gc.collect()
        gc.freeze()
        await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Tells the console's live streams to end, before it waits for open requests to."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and Ctrl-C, and end with exit code 0: being told to stop is no failure."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop serving."""
        self._stopping.set()
        await super().shutdown(sockets)


@asynccontextmanager
async def _worker_beside(settings: Settings, services: Services) -> AsyncIterator[None]:
    """A worker in this process, on the API's own graph: the only way for a graph that lives in one process.

    Raises:
        StartupError: If there is no graph to project into.
    """
    if services.graph is None:
        raise StartupError("--with-worker needs ENABLE_GRAPH_MEMORY=true")
    async with open_worker(settings, services.embedder, services.graph.backend) as context:
        actors = asyncio.create_task(run_actors(context))
        try:
            yield
        finally:
            context.stopping.set()
            await actors
