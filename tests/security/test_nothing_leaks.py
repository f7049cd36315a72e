"""What somebody may not read changes no answer that they get: the same history is told with it and without it.

Two tenants are filled by the same users with records of all kinds. From the second the records are missing that the
reader may not read. Whatever reads is asked in both, and must be answered alike: lists and their pages, records, what
retrieval finds, in which order and with which scores, counts, refusals.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from uuid import UUID

import httpx
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.fixtures.service import TenantFactory
from tests.fixtures.worker import drain
from tests.security.differing import Twins
from tests.security.twin_plans import PERSONS, THINGS, Plan, Relation, Spec, Who, plans
from tests.security.twin_worlds import Asked, Telling

from memory_os.app import create_app, open_services
from memory_os.domain.ids import derived_entity_id
from memory_os.retrieval.log import RetrievalLog
from memory_os.settings import Settings
from memory_os_workers.context import WorkerContext
from memory_os_workers.process import open_worker

EXAMPLES = int(os.environ.get("MEMORY_OS_TWINS", "0"))
"""Histories, drawn anew each time; without it a few, the same each time."""

ALWAYS = 6

_NOWHERE = UUID(int=1)


@dataclass
class Answers:
    """Gives answers the same ids in both worlds: they count among the tokens of a pack, each with its own number."""

    number: int = 0

    def next_id(self) -> UUID:
        """The id of the next one."""
        self.number += 1
        return UUID(int=self.number, version=4)


@dataclass(frozen=True)
class Stage:
    """The service with a worker, in a loop of its own."""

    runner: asyncio.Runner
    client: httpx.AsyncClient
    worker: WorkerContext
    log: RetrievalLog
    make_tenant: TenantFactory
    answers: Answers

    async def settle(self) -> None:
        """Let the worker follow, and what was asked be logged."""
        await drain(self.worker)
        await self.log.close()  # it only waits


@pytest.fixture
def stage(
    service_settings: Settings, tenant_factory: TenantFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    # What is derived gets the same id in both tenants: ids decide between equals.
    monkeypatch.setattr(
        "memory_os.projection.derivation.derived_entity_id", lambda _, name: derived_entity_id(_NOWHERE, name)
    )
    answers = Answers()
    monkeypatch.setattr("memory_os.retrieval.service.new_id", answers.next_id)
    fast = service_settings.model_copy(update={"rate_limit_per_minute": 0})
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def begin() -> Stage:
            services = await stack.enter_async_context(open_services(fast))
            assert services.graph is not None
            worker = await stack.enter_async_context(open_worker(fast, services.embedder, services.graph.backend))
            transport = httpx.ASGITransport(app=create_app(services), raise_app_exceptions=False)  # type: ignore[arg-type] # Litestar's own types
            client = httpx.AsyncClient(transport=transport, base_url="http://memory-os")
            await stack.enter_async_context(client)
            return Stage(runner, client, worker, services.retriever.log, tenant_factory, answers)

        try:
            yield runner.run(begin())
        finally:
            runner.run(stack.aclose())


@pytest.mark.timeout(600 + 20 * EXAMPLES)
def test_what_a_reader_may_not_read_changes_no_answer(stage: Stage) -> None:
    @settings(
        max_examples=EXAMPLES or ALWAYS,
        derandomize=not EXAMPLES,
        deadline=None,
        phases=(Phase.generate,),  # a smaller history would take minutes to find
        suppress_health_check=list(HealthCheck),
    )
    @given(plans())
    def check(plan: Plan) -> None:
        stage.runner.run(_compare(stage, plan))

    check()


_HIDING = Who("a")
_ASKING = Who("ab", ("a",))
_SEEN = Spec(0, "memory", _HIDING, "tenant", (), (), (PERSONS[0], PERSONS[1]), THINGS[0], "Event", False, False, False)
_HIDDEN = replace(_SEEN, number=1, visibility="private", loud=True)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER POLICY memories_app ON memories USING (true)",
        "ALTER POLICY mentions_app ON mentions USING (true)",
        "ALTER POLICY edges_app ON edges USING (true)",
        "ALTER POLICY evidence_app ON evidence USING (true)",
    ],
)
def test_a_hole_changes_an_answer(stage: Stage, change: str) -> None:
    source = replace(_SEEN, number=2, kind="source", visibility="private")
    relations = (
        Relation(0, "edge", _HIDDEN, _SEEN, "SUPPORTS"),
        Relation(1, "evidence", _SEEN, source, "ABOUT"),
        Relation(2, "edge", _SEEN, _HIDDEN, "SUPPORTS"),
    )
    plan = Plan(_ASKING, (_ASKING, _HIDING), (_SEEN, _HIDDEN, source), relations)
    stage.runner.run(_compare(stage, plan))
    with psycopg.connect(stage.make_tenant().owner_url) as connection:
        connection.execute(change)
    with pytest.raises(AssertionError):
        stage.runner.run(_compare(stage, plan))


async def _compare(stage: Stage, plan: Plan) -> None:
    told = [
        Telling(stage.client, stage.make_tenant(), plan, whole=whole, settle=stage.settle) for whole in (True, False)
    ]
    statuses = [await telling.tell() for telling in told]
    assert statuses[0] == statuses[1]
    await stage.settle()
    asked_before = stage.answers.number
    whole = await told[0].ask_all()
    stage.answers.number = asked_before
    visible = await told[1].ask_all()
    assert [asked.question for asked in whole] == [asked.question for asked in visible]
    twins, found = Twins(), []
    for one, other in zip(whole, visible, strict=True):
        found += [f"{one.question}: {fault}" for fault in _faults(plan, one, other, twins)]
    assert not found, "\n".join(found[:20])


def _faults(plan: Plan, one: Asked, other: Asked, twins: Twins) -> Iterator[str]:
    for secret in plan.secrets():
        said = one.raw.lower().replace(one.question.lower(), "")
        if secret in said and secret not in other.raw.lower():  # what the question says may be repeated
            yield f"{secret} in {one.raw}"
    if one.status != other.status:
        yield f"{one.status} and {other.status}: {one.answer} and {other.answer}"
    if one.compared:
        yield from twins.differences(one.answer, other.answer)
