"""Living a year through the API, one day after the other, with or without the nights' cycles.

A day is lived by the real clock: the API is asked, the worker projects and reinforces. Then what was written is put to
the day's simulated time, and the cycles that the tenant is owed that night run with the night as their moment; what
they wrote is put to it in turn. Every question names a conversation of its own: without one, an edge would gain once in
a real hour, and that holds many simulated days.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import httpx

from memory_os.api.services import Services
from memory_os.cycles.running import advance
from memory_os.cycles.scheduling import owe_runs
from memory_os.outbox.events import Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.storage.database import Scope
from memory_os_workers import projector, reinforcer
from memory_os_workers.context import WorkerContext

from .clock import Clock
from .history import DAY, WORLD, History, date_of
from .steps import Amend, Ask, Declare, Finish, Replace, Retire, Step, Tie, Write

MORNING: Final = timedelta(hours=9)
NIGHT: Final = timedelta(hours=26)
"""Two o'clock of the next day, when cycles are due."""

DEPTH: Final = 10
"""Records of an answer."""

_NOBODY: Final = UUID(int=0)

Json = dict[str, Any]


@dataclass(slots=True)
class Life:
    """A tenant that lives a history.

    Attributes:
        name: What it is called in figures.
        headers: A token of an admin, as headers.
        cycles: Whether nights have their cycles.
        ids: What was written, by key.
        made: How much the cycles did, by rule.
        counts: What there was at the end of each month.
    """

    name: str
    client: httpx.AsyncClient
    headers: dict[str, str]
    services: Services
    worker: WorkerContext
    clock: Clock
    cycles: bool
    ids: dict[str, str] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    counts: list[Json] = field(default_factory=list)
    asked: int = 0
    accepted: int = 0
    night_s: float = 0.0

    @property
    def scope(self) -> Scope:
        """The worker's, in this tenant."""
        return Scope(WORKER_ROLE, self.clock.tenant_id)

    async def call(self, method: str, path: str, body: Json | None = None, *, own: bool = False) -> Json:
        """Ask the API, for the team or for the person alone.

        Raises:
            AssertionError: If it refuses.
        """
        headers = {**self.headers, **({"X-Memory-User": WORLD["user"]} if own else {})}
        answer = await self.client.request(method, path, json=body, headers=headers)
        assert answer.is_success, f"{method} {path} {body}: {answer.status_code} {answer.text}"
        return dict(answer.json())

    async def ask(self, query: str, at: datetime, conversation: str) -> Json:
        """Ask memory for the person, who sees the team's and their own, as of a simulated time."""
        body = {"query": query, "as_of": at.isoformat(), "conversation_id": conversation, "budget_tokens": 8_000}
        pack = await self.call("POST", "/v1/retrieve", {**body, "limits": {"memories": DEPTH}}, own=True)
        await self.services.retriever.log.settle(UUID(pack["retrieval_id"]))
        return pack

    async def use(self, pack: Json, wanted: Sequence[str]) -> None:
        """Say which of the wanted records of an answer were of use."""
        inside = {item["id"] for item in pack["items"]}
        if used := [ident for ident in dict.fromkeys(wanted) if ident in inside]:
            await self.call("POST", f"/v1/retrievals/{pack['retrieval_id']}/feedback", {"used": used}, own=True)

    async def settle(self) -> None:
        """Let the worker project and reinforce all that waits."""
        await self._drain()
        await reinforcer.settle(self.worker)
        await self._drain()

    async def _drain(self) -> None:
        while tenants := await self.worker.queue.due_tenants(_NOBODY, 100):
            for tenant_id in tenants:
                await projector.take_turn(self.worker, tenant_id)

    async def live(self, number: int, steps: Sequence[Step]) -> None:
        """Live one day, without its night."""
        since, moment = self.clock.now(), date_of(number) + MORNING
        for step in steps:
            await self._take(step, moment)
        await self.settle()
        self.clock.shift(since, moment)

    async def sleep(self, number: int) -> list[Json]:
        """Let the night come: the cycles that are owed run, if this life has any. Gives the runs."""
        if not self.cycles:
            return []
        since, moment = self.clock.now(), date_of(number) + NIGHT
        entered = await self.worker.database.run(self.scope, lambda tx: owe_runs(tx, moment))
        outbox = Outbox(enabled=True)
        while (await self.worker.database.run(self.scope, lambda tx: advance(tx, outbox))) is not None:
            pass
        self.night_s += (self.clock.now() - since).total_seconds()
        runs = self.clock.rows("SELECT cycle, status, counts FROM cycle_runs WHERE id = ANY(%(ids)s)", ids=entered)
        for run in runs:
            assert run["status"] == "done", run
            self.runs[run["cycle"]] += 1
            self.made.update(run["counts"])
        await self.settle()
        await self._prune(moment)
        self.clock.shift(since, moment)
        return runs

    async def _prune(self, moment: datetime) -> None:
        """Let the log of retrievals lose what has served its time, as the pruner would at that moment."""
        behind = (self.clock.now() - moment).total_seconds()
        days = self.services.settings.retrieval_retention_d
        given = {"tenant_id": self.clock.tenant_id, "seconds": behind + days * DAY.total_seconds(), "batch": 2_000}
        await self.worker.database.run(self.scope, lambda tx: tx.touched("prune_retrievals", given))

    async def _take(self, step: Step, moment: datetime) -> None:
        match step:
            case Declare():
                body = {"name": step.name, "entity_type": step.entity_type}
                made = await self.call("POST", "/v1/memory/entities", body)
                self.ids[step.key] = made["entity"]["id"]
            case Write():
                await self._write(step)
            case Replace():
                body = {"text": step.text, "valid_from": moment.isoformat()}
                path = f"/v1/memories/{self.ids[step.old]}/supersede"
                made = await self.call("POST", path, body, own=step.own)
                self.ids[step.key] = made["memory"]["id"]
            case Amend():
                await self.call("PATCH", f"/v1/memories/{self.ids[step.key]}", {"text": step.text}, own=True)
            case Finish():
                await self.call("POST", f"/v1/memories/{self.ids[step.key]}/{step.how}")
            case Retire():
                await self.call("PATCH", f"/v1/memory/entities/{self.ids[step.key]}", {"status": "retired"})
            case Ask():
                self.asked += 1
                pack = await self.ask(step.query, moment, f"question {self.asked}")
                await self.use(pack, [self.ids[key] for key in step.uses if key in self.ids])

    async def _write(self, step: Write) -> None:
        body: Json = {"text": step.text, "label": step.label, "edges": [self._edge(tie) for tie in step.ties]}
        if step.valid_to is not None:
            body["valid_to"] = step.valid_to.isoformat()
        if step.own:
            body["visibility"] = "private"
        if not step.gated:
            body["dedup"] = "off"
        made = await self.call("POST", "/v1/memories", body, own=step.own)
        self.ids[step.key] = made["memory"]["id"]

    def _edge(self, tie: Tie) -> Json:
        end = "entity" if tie.to in _ENTITIES else "memory"
        edge: Json = {"type": tie.type, "to": {end: self.ids[tie.to]}}
        return edge if tie.confidence is None else {**edge, "confidence": tie.confidence}

    def count(self, number: int) -> Json:
        """What there is, at the end of a day."""
        counted = self.clock.count
        self.counts.append(
            {
                "day": number + 1,
                "memories": counted("memories"),
                "in force": counted("memories", "status = 'active' AND stale_at IS NULL"),
                "entities": counted("entities"),
                "edges": counted("edges"),
                "archived edges": counted("archived_edges"),
            }
        )
        return self.counts[-1]


_ENTITIES: Final = {WORLD["system"]["name"], *(topic["name"] for topic in WORLD["topics"])}


async def live_all(
    lives: Sequence[Life],
    history: History,
    *,
    every: int = 7,
    after_night: Callable[[Life, int], Any] | None = None,
    midway: Callable[[Life, datetime], Any] | None = None,
    tell: Callable[[str], None] = print,
) -> None:
    """Let lives share a history, day by day.

    Args:
        lives: Whose.
        history: What happens.
        every: Days between two counts.
        after_night: Awaited for each life after each night.
        midway: Awaited for each life once, in the evening of the middle day.
        tell: Told of the progress.
    """
    for life in lives:
        life.clock.begin(date_of(0) - DAY)
    for number, steps in enumerate(history.days):
        for life in lives:
            await life.live(number, steps)
            if midway is not None and number == history.day_of(0.5):
                await midway(life, date_of(number) + MORNING)
            await life.sleep(number)
            if after_night is not None:
                await after_night(life, number)
            if (number + 1) % every == 0 or number + 1 == len(history.days):
                counts = life.count(number)
                tell(f"day {number + 1} {life.name}: {counts}")
