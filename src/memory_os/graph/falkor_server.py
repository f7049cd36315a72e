"""The connection to FalkorDB: made when first needed, bounded in time and number, with our own errors.

The `falkordb` client is a thin layer over `redis`; of it this room uses the connection. Its asynchronous constructor
asks the server synchronously whether it is a cluster, which would block the event loop and fail while the server is
down: so it runs in a thread, at the first call. Its cluster connection drops the socket time-outs, so that a cluster
gets one of our own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from falkordb.asyncio import FalkorDB
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from memory_os.graph.falkor_replies import Reply, read_reply, translate_errors, translate_reply

QUERY = "GRAPH.QUERY"
RO_QUERY = "GRAPH.RO_QUERY"

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class FalkorAddress:
    """Where the server is and how long to wait for it, in seconds."""

    host: str = "127.0.0.1"
    port: int = 6379
    username: str | None = None
    password: str | None = None
    tls: bool = False
    connect_timeout: float = 2.0
    socket_timeout: float = 10.0
    """Longest wait for one reply. The server's own time-out of reads fires late (measured: 18 s for 200 ms)."""
    concurrency: int = 16
    """Calls in flight at most; more wait here rather than in the server's queue."""


class FalkorServer:
    """A FalkorDB server or a cluster of them, as one process sees it."""

    def __init__(self, address: FalkorAddress) -> None:
        self._address = address
        self._client: Redis | RedisCluster | None = None
        self._connecting = asyncio.Lock()
        self._slots = asyncio.Semaphore(address.concurrency)

    async def close(self) -> None:
        """Let go of all connections; the next call makes new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def identify(self) -> str:
        """Give the run id of the server, or those of all primaries of a cluster, sorted and joined by commas."""

        async def ask(client: Redis | RedisCluster) -> str:
            if not isinstance(client, RedisCluster):
                return str((await client.info("server"))["run_id"])
            info = await client.info("server", target_nodes=RedisCluster.PRIMARIES)
            # One primary is answered without the level of nodes.
            nodes = [info] if "run_id" in info else list(info.values())
            return ",".join(sorted(str(node["run_id"]) for node in nodes))

        return await self._call(ask)

    async def read(self, key: str, queries: Sequence[str]) -> list[Reply]:
        """Run read-only queries in one round trip and give their rows.

        Raises:
            MissingGraphError: There is no graph under the key.
        """

        async def ask(client: Redis | RedisCluster) -> list[object]:
            if len(queries) == 1:
                return [await client.execute_command(RO_QUERY, key, queries[0], "--compact")]
            pipeline = client.pipeline(transaction=False)
            for query in queries:
                pipeline.execute_command(RO_QUERY, key, query, "--compact")
            return list(await pipeline.execute(raise_on_error=False))

        return [read_reply(reply) for reply in await self._call(ask)]

    async def write(self, key: str, query: str) -> Reply:
        """Run one query that may write, and makes the graph where it is missing."""
        return read_reply(await self.command(QUERY, key, query, "--compact"))

    async def command(self, *arguments: str) -> object:
        """Run one plain command."""
        return await self._call(lambda client: client.execute_command(*arguments))

    @asynccontextmanager
    async def watch(self, *keys: str) -> AsyncIterator[Watched]:
        """Open a transaction that fails with `WatchError` if anybody writes to a key before its end."""
        async with self._slots:
            with translate_errors():
                client = await self._connect()
                async with client.pipeline(transaction=True) as pipeline:
                    await pipeline.watch(*keys)
                    yield Watched(pipeline)

    async def _call(self, ask: Callable[[Redis | RedisCluster], Awaitable[Result]]) -> Result:
        async with self._slots:
            with translate_errors():
                return await ask(await self._connect())

    async def _connect(self) -> Redis | RedisCluster:
        if self._client is None:
            async with self._connecting:
                if self._client is None:
                    self._client = await self._open()
        return self._client

    async def _open(self) -> Redis | RedisCluster:
        options: dict[str, Any] = {
            "host": self._address.host,
            "port": self._address.port,
            "username": self._address.username,
            "password": self._address.password,
            "ssl": self._address.tls,
            "socket_timeout": self._address.socket_timeout,
            "socket_connect_timeout": self._address.connect_timeout,
            "protocol": 2,  # the reply form that FalkorDB documents
        }
        found = await asyncio.to_thread(FalkorDB, **options)
        if isinstance(found.connection, Redis):
            # Nothing is sent twice behind our back: the budget of a call is the budget of one attempt.
            found.connection.set_retry(Retry(NoBackoff(), 0))
            return found.connection
        await found.connection.aclose()
        # One retry is how the client follows a failover to the new primary.
        return RedisCluster(
            **options,
            decode_responses=True,
            retry=Retry(NoBackoff(), 1),
            max_connections=self._address.concurrency + 1,
        )


class Watched:
    """A transaction whose keys are watched: reads first, then all the writes at once."""

    def __init__(self, pipeline: Any) -> None:  # noqa: ANN401 -- the client's two pipelines share no base class
        self._pipeline = pipeline

    async def read(self, key: str, query: str) -> Reply:
        """Run a read-only query; raises `MissingGraphError` where there is no graph."""
        with translate_errors():
            return read_reply(await self._pipeline.execute_command(RO_QUERY, key, query, "--compact"))

    async def commit(self, commands: Sequence[Sequence[str]]) -> list[object]:
        """Send the commands in one MULTI/EXEC, one round trip, and give their raw replies.

        Raises:
            ChangedMeanwhileError: A watched key has changed; nothing was done.
            GraphError: A command was refused; the others were done all the same.
        """
        self._pipeline.multi()
        for command in commands:
            self._pipeline.execute_command(*command)
        with translate_errors():
            replies = list(await self._pipeline.execute(raise_on_error=False))
        for reply in replies:
            if isinstance(reply, Exception):
                raise translate_reply(reply) from reply
        return replies
