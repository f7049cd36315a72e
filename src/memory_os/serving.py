"""The API process: uvicorn around the application."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack

import uvicorn
import uvloop

from memory_os.app import create_app, open_services
from memory_os.errors import StartupError
from memory_os.logging import configure_logging
from memory_os.settings import Settings

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
        app = create_app(services)
        config = uvicorn.Config(
            app,
            http="httptools",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_STOP_S,
            lifespan="on",
        )
        await uvicorn.Server(config).serve(sockets=[listener])
