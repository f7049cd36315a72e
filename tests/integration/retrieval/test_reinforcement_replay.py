"""A thousand questions asked twice: what is used often gains, and nothing else is found because of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from statistics import mean
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain, dump

from memory_os.api.services import Services
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.retrieval.arms import Ref
from memory_os.retrieval.model import Arms, Limits, RetrievalRequest
from memory_os.settings import Settings
from memory_os_workers import reinforcer
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

QUESTIONS = 1_000
UNRELATED = 150
MEMORIES = 160
TYPES = ("SUPPORTS", "REQUIRES", "PART_OF", "ADVANCES", "INFLUENCES", "ABOUT")
SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "ti", "vo", "zu")


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    """The harshest rule: every unconfirmed retrieval counts; and vectors that need no model."""
    return service_settings.model_copy(
        update={
            "reinforce_unconfirmed_share": 1.0,
            "embedding_provider": "deterministic-for-tests",
            "memory_os_allow_test_embedder": True,
            "log_level": "error",
        }
    )


class Words:
    """Made-up words, half of them for the questions that are replayed and half for the unrelated ones."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        words = sorted({"".join(source.choices(SYLLABLES, k=3)) for _ in range(200)})
        source.shuffle(words)
        self.asked, self.unrelated = words[:80], words[80:160]

    def question(self, words: Sequence[str]) -> str:
        return " ".join(self._source.sample(words, 2))

    def text(self) -> str:
        return " ".join([*self._source.sample(self.asked, 3), *self._source.sample(self.unrelated, 3)])


async def fill(client: httpx.AsyncClient, tenant: TestTenant, words: Words, source: random.Random) -> None:
    """Memories in layers, each tied to two or three of the layers before."""
    known: list[str] = []
    for _ in range(MEMORIES // 40):
        layer = [str(new_id()) for _ in range(40)]
        items: list[dict[str, Any]] = [
            {
                "id": ident,
                "text": words.text(),
                "label": "Reference",
                "dedup": "off",
                "edges": [
                    {"type": kind, "to": end, "confidence": round(source.uniform(0.3, 0.95), 2)}
                    for kind, end in zip(source.sample(TYPES, 3), source.sample(known, 3), strict=True)
                ]
                if known
                else [],
            }
            for ident in layer
        ]
        answer = await client.post("/v1/memories/batch", json={"items": items}, headers=tenant.headers())
        assert {result["status"] for result in answer.json()["results"]} == {201}, answer.text
        known += layer


def edges_of(urls: DatabaseUrls) -> dict[UUID, tuple[float, int]]:
    with psycopg.connect(urls.owner_url) as connection:
        return {row[0]: row[1:] for row in connection.execute("SELECT id, confidence, co_reference_count FROM edges")}


class Asker:
    """Asks the service itself, without HTTP."""

    def __init__(self, services: Services, tenant: TestTenant) -> None:
        self._retriever = services.retriever
        self._principal = Principal(tenant.tenant_id, "reader")

    async def ask(self, query: str, conversation: str | None) -> tuple[list[UUID], set[Ref]]:
        """The records of the pack in order, and all candidates; logged where there is a conversation."""
        arms = Arms(vector=conversation is None)  # words and edges alone are replayed, in half of the time
        limits = Limits(memories=10 if conversation is None else 6)
        request = RetrievalRequest(query, limits=limits, arms=arms, conversation_id=conversation, budget_tokens=32_000)
        for _ in range(5):
            retrieved = await self._retriever.retrieve(self._principal, request, None)
            if retrieved.pack.graph.state == "current":
                break  # a busy machine may use up the graph's time now and then
        assert retrieved.pack.graph.state == "current"
        if conversation is not None:
            self._retriever.log.keep(retrieved.entry)
        return [item.id for item in retrieved.pack.items], {item.ref for item in retrieved.entry.items}

    async def ask_all(self, questions: dict[str, str]) -> None:
        """Ask by conversation, two at a time, so that Postgres works while Python does."""
        waiting = iter(questions.items())

        async def go_on() -> None:
            for conversation, query in waiting:
                await self.ask(query, conversation)

        await asyncio.gather(go_on(), go_on())

    async def settled(self, worker: WorkerContext) -> int:
        """Have the worker apply what was logged, and project it; the number of walks that counted."""
        await self._retriever.log.close()
        outcomes = await reinforcer.settle(worker)
        await drain(worker)
        return outcomes["counted"]


async def test_replaying_a_thousand_questions_twice_changes_only_the_order(
    client: httpx.AsyncClient,
    tenant: TestTenant,
    services: Services,
    worker: WorkerContext,
    database_urls: DatabaseUrls,
) -> None:
    source = random.Random(20)
    words = Words(source)
    await fill(client, tenant, words, source)
    await drain(worker)
    asker = Asker(services, tenant)
    questions = [words.question(words.asked) for _ in range(QUESTIONS)]
    unrelated = [words.question(words.unrelated) for _ in range(UNRELATED)]
    edges = edges_of(database_urls)
    graph = await dump(worker, tenant.tenant_id)
    before = [await asker.ask(query, None) for query in unrelated]

    counted = 0
    for replay in ("first", "second"):
        for start in range(0, QUESTIONS, 250):
            # As if the whole day came again, past every breaker.
            await asker.ask_all({f"{replay} {n}": questions[n] for n in range(start, start + 250)})
            counted += await asker.settled(worker)

    after = [await asker.ask(query, None) for query in unrelated]
    gained = edges_of(database_urls)
    assert gained.keys() == edges.keys()
    assert max(confidence for confidence, _ in gained.values()) == 1.0  # so much was used that the cap was met
    assert sum(count for _, count in gained.values()) == counted > QUESTIONS
    grown = await dump(worker, tenant.tenant_id)
    assert (grown.mentions, grown.co_occurrences, grown.edges.keys()) == (
        graph.mentions,
        graph.co_occurrences,
        graph.edges.keys(),
    )
    assert [found for _, found in after] == [found for _, found in before]
    overlaps = [len({*old} & {*new}) / len(old) for (old, _), (new, _) in zip(before, after, strict=True)]
    print(f"top-10 overlap: {mean(overlaps):.3f}, least {min(overlaps):.2f}; {counted} walks counted")  # noqa: T201
    assert mean(overlaps) >= 0.95
