"""Workers that die, freeze or fail at any point of their work, in one process and one event loop.

A worker has its own `WorkerContext` on a database and a graph backend that count what passes through them. Each begin,
commit and backend call is a *point* with a name. What is drawn for a worker (its `Fate`) strikes at a point:

- a **crash** raises `KilledError`, a BaseException, and so does every later input or output of that worker: no handler
  and no finally-block reaches a store any more, which is what SIGKILL means;
- a worker that is **parked** stands still at the point as under SIGSTOP, while everybody else goes on;
- the **graph** or the **base** is lost for one call: before it took effect, or after;
- a **blind** worker's transactions have entered no tenant: row-level security shows them nothing. To a **dim** one the
  policies show no canonical rows, though it has entered the tenant.

A worker does one call at a time, in an order that its seed decides where several of its tasks want one: so a history
can be run again, and shrinks.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

import psycopg
from tests.property.stages import Stage

from memory_os.domain.ids import new_id
from memory_os.embedding.deterministic import DeterministicEmbedder
from memory_os.graph.port import GraphBackend, GraphDataError, GraphPatch, GraphUnavailableError, Mention
from memory_os.outbox.breaker import Breaker
from memory_os.outbox.queue import Queue
from memory_os.projection.projector import Projector
from memory_os.settings import Settings
from memory_os.storage.database import Database, Scope, Transaction
from memory_os_workers.context import WorkerContext

Kind = Literal["none", "crash", "park", "graph lost", "base lost", "blind", "dim"]
BATCHES = (1, 2, 3, 50)
_LEASE_S = 600.0
"""No lease ends by itself within a history; time passes by SQL."""

_CANONICAL = frozenset({"projected_memories", "projected_edges", "projected_links", "present_entities"})
"""The statements by which an event's aggregate is looked up."""

_EMBEDDER = DeterministicEmbedder(8)
_SETTINGS = {
    batch: Settings(_env_file=None, enable_graph_memory=True, worker_batch_size=batch, worker_lease_s=_LEASE_S)
    for batch in BATCHES
}


class KilledError(BaseException):
    """The worker is dead."""


class BaseLostError(psycopg.OperationalError):
    """The connection to Postgres broke because the history says so."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to a worker, and where: at the `nth` point of that name, or of all points where it has none."""

    kind: Kind = "none"
    place: str = ""
    nth: int = 1


class _LongestWait(random.Random):
    """Jitter without chance: a backoff lasts until the history says that time has passed."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


class Baton:
    """Lets one task of a worker do something at a time; who is next is drawn from the worker's own randomness."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._held = False
        self._waiting: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> None:
        if self._held:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._pass_on()
                raise
        self._held = True

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        self._held = False
        self._waiting = [turn for turn in self._waiting if not turn.done()]
        if self._waiting:
            self._held = True
            self._waiting.pop(self._source.randrange(len(self._waiting))).set_result(None)


class Life:
    """Whether a worker lives, and what is in store for it."""

    def __init__(self, seed: int) -> None:
        self.baton = Baton(random.Random(seed))
        self.fate = Fate()
        self.dead = False
        self.parked = asyncio.Event()
        self._resumed = asyncio.Event()
        self._passed = 0

    def begin(self, fate: Fate) -> None:
        """Take up a new piece of work with this fate."""
        self.fate, self._passed = fate, 0

    def resume(self) -> None:
        """Let a parked worker go on, without anything more in store."""
        self.fate = Fate()
        self.parked.clear()
        self._resumed.set()

    def sees(self, scope: Scope) -> Scope:
        """The scope that a transaction really enters."""
        if self.fate.kind != "blind" or scope.tenant_id is None or not self._strikes(("begin",)):
            return scope
        return _BlindScope(scope.db_role, scope.tenant_id)

    def hides(self, statement: str) -> bool:
        """Whether the worker does not see what a statement would give."""
        return self.fate.kind == "dim" and statement in _CANONICAL and self._strikes(())

    async def reach(self, places: Iterable[str], *, store: Literal["graph", "base"], inside: bool = False) -> None:
        """Pass a point, or not. `inside` a transaction nobody can stand still: its locks would stop all others."""
        if self.dead:
            raise KilledError
        kind = self.fate.kind
        wanted = {"crash": True, "park": not inside, "graph lost": store == "graph", "base lost": store == "base"}
        if not wanted.get(kind) or not self._strikes(places):
            return
        if kind == "crash":
            self.dead = True
            raise KilledError
        self.fate = Fate()
        if kind == "graph lost":
            raise GraphUnavailableError("the history says so")
        if kind == "base lost":
            raise BaseLostError("the history says so")
        self._resumed.clear()
        self.parked.set()
        await self._resumed.wait()
        if self.dead:
            raise KilledError

    def _strikes(self, places: Iterable[str]) -> bool:
        if self.fate.place and self.fate.place not in places:
            return False
        self._passed += 1
        return self._passed == self.fate.nth or (self.fate.kind in ("blind", "dim") and self.fate.nth == 0)


class _BlindScope(Scope):
    """A scope that has lost its tenant on the way to Postgres."""

    def parameters(self) -> dict[str, str]:
        return {**super().parameters(), "tenant": ""}


class _NotedTransaction(Transaction):
    """Notes which statements it ran: they name the points at its end."""

    def __init__(self, of: Transaction, life: Life) -> None:
        super().__init__(of._connection, of._driver, of.scope)
        self.statements: list[str] = []
        self._life = life

    async def hot(self, name: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        self.statements.append(name)
        return [] if self._life.hides(name) else await super().hot(name, parameters)

    async def touched(self, name: str, parameters: Mapping[str, Any] | None = None) -> int:
        self.statements.append(name)
        return await super().touched(name, parameters)


class MortalDatabase(Database):
    """The pool of all workers, as one of them uses it: `in:` and `after:` a statement name the points of its commit."""

    def __init__(self, shared: Database, life: Life) -> None:
        self.engine = shared.engine
        self.url = shared.url
        self._enter_statement = shared._enter_statement
        self._life = life

    @asynccontextmanager
    async def transaction(self, scope: Scope) -> AsyncIterator[Transaction]:
        async with self._life.baton:
            await self._life.reach(("begin",), store="base")
            async with super().transaction(self._life.sees(scope)) as transaction:
                noted = _NotedTransaction(transaction, self._life)
                yield noted
                await self._life.reach([f"in:{name}" for name in noted.statements], store="base", inside=True)
            await self._life.reach([f"after:{name}" for name in noted.statements], store="base")


@dataclass(slots=True)
class Refusals:
    """Nodes that the graph refuses to hold, and after how many statements of a patch it does so."""

    ids: set[str] = field(default_factory=set)
    after: int = 0

    def meet(self, patch: GraphPatch) -> bool:
        """Whether a patch would set one of them."""
        return bool(self.ids) and any(row.id in self.ids for row in (*patch.memories, *patch.entities))


class MortalBackend:
    """The stage's graph backend as one worker uses it: `before:` and `after:` a method name the points of its calls.

    Args:
        inner: Gives the backend that is open at present.
        life: The worker's.
        refusals: What the graph refuses.
    """

    def __init__(self, inner: Callable[[], GraphBackend], life: Life, refusals: Refusals) -> None:
        self._inner = inner
        self._life = life
        self._refusals = refusals

    @property
    def name(self) -> str:
        return self._inner().name

    @property
    def keeps_writes(self) -> bool:
        return self._inner().keeps_writes

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **named: Any) -> Any:
            async with self._life.baton:
                await self._life.reach((f"before:{name}",), store="graph")
                result = await getattr(self._inner(), name)(*arguments, **named)
                await self._life.reach((f"after:{name}",), store="graph")
                return result

        return call

    async def apply(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        async with self._life.baton:
            await self._life.reach(("before:apply",), store="graph")
            if self._refusals.meet(patch):
                await self._write_in_part(tenant_id, token, patch)
                raise GraphDataError("the history says so")
            await self._inner().apply(tenant_id, token, patch)
            await self._life.reach(("after:apply",), store="graph")

    async def load(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        async with self._life.baton:
            await self._life.reach(("before:load",), store="graph")
            if self._refusals.meet(patch):
                raise GraphDataError("the history says so")
            await self._inner().load(tenant_id, token, patch)
            await self._life.reach(("after:load",), store="graph")

    async def _write_in_part(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        backend = self._inner()
        for part in (await split_by_statement(backend, tenant_id, patch))[: self._refusals.after]:
            await backend.apply(tenant_id, token, part)


async def split_by_statement(backend: GraphBackend, tenant_id: UUID, patch: GraphPatch) -> list[GraphPatch]:
    """A patch as the steps in which a backend may write it that can't write it as one: see `GraphPatch`.

    Mentions are set beside those that are there, then come the co-occurrences, and last what is no longer mentioned
    goes.
    """
    there = await backend.mentioned_entities(tenant_id, [row.id for row in patch.memories])
    listed = {(row.memory_id, row.entity_id) for row in patch.mentions}
    left = [(memory, entity) for memory, found in there.items() for entity in found if (memory, entity) not in listed]
    kept = [row for row in await backend.look_up(tenant_id, "mentions", left) if isinstance(row, Mention)]
    return [
        GraphPatch(entities=patch.entities),
        GraphPatch(memories=patch.memories, mentions=[*patch.mentions, *kept]),
        GraphPatch(co_occurrences=patch.co_occurrences),
        GraphPatch(memories=patch.memories, mentions=patch.mentions),
        GraphPatch(
            edges=patch.edges,
            deleted_edges=patch.deleted_edges,
            links=patch.links,
            deleted_links=patch.deleted_links,
        ),
    ]


class Worker:
    """One worker, whose turns the history takes for it.

    Args:
        stage: The stores.
        refusals: What the graph refuses.
        seed: Of the order in which its tasks go on.
        batch: Events that it claims at once.
        backend: Gives the graph backend that is open at present, where it is not the stage's own.
    """

    def __init__(
        self,
        stage: Stage,
        refusals: Refusals,
        *,
        seed: int = 0,
        batch: int = 50,
        backend: Callable[[], GraphBackend] | None = None,
    ) -> None:
        self.id = new_id()
        self.life = Life(seed)
        self.token: UUID | None = None
        self._stage = stage
        self._task: asyncio.Task[Any] | None = None
        settings, source = _SETTINGS[batch], _LongestWait(seed)
        database = MortalDatabase(stage.worker, self.life)
        graph = MortalBackend(backend or (lambda: stage.backend), self.life, refusals)
        self.context = WorkerContext(
            worker_id=self.id,
            settings=settings,
            database=database,
            embedder=_EMBEDDER,
            backend=graph,
            queue=Queue(database, self.id, lease_s=_LEASE_S, backoff=(60.0, 300.0), source=source),
            projector=Projector(database, graph),
            breaker=Breaker(time.monotonic, source),
            source=source,
        )

    @property
    def dead(self) -> bool:
        return self.life.dead

    def begin(self, work: Awaitable[Any], fate: Fate) -> bool:
        """Do a piece of work under a fate. False when the worker stands still in the middle of it."""
        self.life.begin(fate)
        self.context.breaker.succeed()
        self._task = asyncio.ensure_future(work, loop=self._stage.loop)
        return self._go_on()

    def resume(self) -> bool:
        """Let the worker go on from where it stands; as `begin`."""
        self.life.resume()
        return self._go_on()

    def kill(self) -> None:
        """Kill it where it stands."""
        self.life.dead = True
        if self._task is not None and not self._task.done():
            self.resume()

    def _go_on(self) -> bool:
        task = self._task
        assert task is not None

        async def until_it_stands() -> None:
            standing = asyncio.ensure_future(self.life.parked.wait())
            await asyncio.wait({task, standing}, return_when=asyncio.FIRST_COMPLETED)
            standing.cancel()

        self._stage.run(until_it_stands())
        if not task.done():
            return False
        self._task = None
        error = task.exception()
        if error is not None and not isinstance(error, KilledError | BaseLostError):
            raise error
        return True
