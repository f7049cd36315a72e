"""A memory that much happened to: each chapter leaves its word in some further place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
from tests.fixtures.acting import Actor
from tests.fixtures.worker import drain

from memory_os.graph.port import GraphPatch
from memory_os_workers import verifier
from memory_os_workers.context import WorkerContext

CANARY = "Zyxquvort"
NAME = f"{CANARY} Halde"
TEXT = f"{NAME} met Ann Miller about the Ledger Migration."

Chapter = Callable[["Story"], Awaitable[None]]


@dataclass
class Story:
    """The memory, what is beside it and stays, and what was derived from it and goes with it."""

    actor: Actor
    worker: WorkerContext
    close_log: Callable[[], Awaitable[None]]
    memory: str = ""
    beside: list[str] = field(default_factory=list)
    derived: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)

    @property
    def tenant_id(self) -> UUID:
        """Whose story it is."""
        return self.actor.tenant.tenant_id

    async def send(self, method: str, url: str, body: Any = None, role: str = "admin", **headers: str) -> Any:
        """A call that must succeed."""
        answer = await self.try_to_send(method, url, body, role, **headers)
        assert answer.is_success, (url, answer.text)
        return answer.json()

    async def try_to_send(
        self, method: str, url: str, body: Any = None, role: str = "admin", **headers: str
    ) -> httpx.Response:
        """A call."""
        content = {} if body is None else {"json": body}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.actor.client.request(
            method, url, headers={**self.actor.tenant.headers(role), **named}, **content
        )

    async def begin(self) -> None:
        """Store the memory under a key, and others that share names with it."""
        body = {
            "text": TEXT,
            "label": "Attribute",
            "title": f"About {CANARY}",
            "tags": [CANARY],
            "metadata": {CANARY: [CANARY]},
            "subject": CANARY,
            "property": CANARY,
        }
        answer = await self.send("POST", "/v1/memories", body, "writer", Idempotency_Key="first")
        self.memory = answer["memory"]["id"]
        for text in ("Ann Miller bakes bread.", "Ann Miller leads the Ledger Migration.", "It rains."):
            self.beside.append((await self.actor.remember(text))["id"])
        await drain(self.worker)
        self.entities = [await self.actor.declare(name) for name in ("Ledger Team", "Ledger Crew")]

    async def repeat_first_request(self) -> httpx.Response:
        """The request that stored the memory once more."""
        body = {
            "text": TEXT,
            "label": "Attribute",
            "title": f"About {CANARY}",
            "tags": [CANARY],
            "metadata": {CANARY: [CANARY]},
            "subject": CANARY,
            "property": CANARY,
        }
        return await self.try_to_send("POST", "/v1/memories", body, "writer", Idempotency_Key="first")


async def link(story: Story) -> None:
    """Declare links with words of their own, and delete one of them."""
    url = f"/v1/memory/entities/{story.entities[0]}/links"
    for relationship in (f"keeps {CANARY}", f"lost {CANARY}"):
        body = {"layer": "memory", "target_id": story.memory, "relationship": relationship}
        made = await story.send("POST", url, body, "writer")
    await story.send("DELETE", f"{url}/{made['link']['id']}", role="writer")


async def merge_entities(story: Story) -> None:
    """Merge an entity that is linked to the memory: the act keeps the links as they were."""
    source = await story.actor.declare("Ledger Crews")
    for entity in (source, story.entities[1]):
        body = {"layer": "memory", "target_id": story.memory, "relationship": f"stores {CANARY}"}
        await story.send("POST", f"/v1/memory/entities/{entity}/links", body)
        edge = {"type": "ABOUT", "from": {"memory": story.memory}, "to": {"entity": entity}}
        await story.send("POST", "/v1/edges", edge)
    merge = {"from": source, "into": story.entities[1]}
    answer = await story.try_to_send("POST", "/v1/memory/entities/merge", merge)
    assert answer.is_success, answer.text


async def repeat(story: Story) -> None:
    """Store the same again, which merges: the act keeps what was said the second time."""
    await story.send("POST", "/v1/memories", {"text": TEXT, "label": "Attribute", "title": CANARY}, "writer")


async def summarise(story: Story) -> None:
    """Derive a summary, and a summary of that."""
    on = story.memory
    for text in (f"In short: {NAME} was there.", f"Shorter: {CANARY}."):
        made = await story.actor.remember(text)
        await story.actor.tie("EXTRACTED_FROM", made["id"], on)
        story.derived.append(made["id"])
        on = made["id"]


async def ask(story: Story) -> None:
    """Ask for it, and say that the answer was of use."""
    found = await story.send("POST", "/v1/retrieve", {"query": f"What did {NAME} do?"}, "reader")
    await story.close_log()
    shown = [item["id"] for item in found["items"]]
    if story.memory in shown:
        await story.send("POST", f"/v1/retrievals/{found['retrieval_id']}/feedback", {"used": shown}, "reader")


async def correct(story: Story) -> None:
    """Propose corrections of it; reject one of them."""
    for kind, proposal in (("replace_text", {"text": f"{CANARY} never came."}), ("retract", {})):
        body = {"target": story.memory, "kind": kind, "proposal": proposal, "reason": f"{CANARY} says so"}
        made = await story.send("POST", "/v1/corrections", body, "reader")
    url = f"/v1/corrections/{made['correction']['id']}/reject"
    await story.send("POST", url, {"reason": f"{CANARY} was there"}, "reviewer")


async def correct_towards(story: Story) -> None:
    """Propose of another memory that it is contradicted by this one."""
    proposal = {"against": story.memory}
    body = {"target": story.beside[2], "kind": "dispute", "proposal": proposal, "reason": f"{CANARY} says so"}
    await story.send("POST", "/v1/corrections", body, "reader")


async def dispute(story: Story) -> None:
    """Dispute it against another memory, for a reason."""
    body = {"against": story.beside[0], "reason": f"{CANARY} lies"}
    await story.try_to_send("POST", f"/v1/memories/{story.memory}/dispute", body, "writer")


async def evidence(story: Story) -> None:
    """Bear it out by a source, which stays."""
    passages = [{"text": "They met in the morning."}]
    source = await story.send("POST", "/v1/sources", {"kind": "document", "title": "Minutes", "passages": passages})
    body = {"source_id": source["source"]["id"], "support": "states", "quote": "in the morning"}
    await story.send("POST", f"/v1/memories/{story.memory}/evidence", body, "writer")


async def change(story: Story) -> None:
    """Change its title and text twice, which the history and the log tell of."""
    for title in (f"{CANARY} again", "Meeting"):
        await story.send("PATCH", f"/v1/memories/{story.memory}", {"title": title}, "writer")


async def move_edges(story: Story) -> None:
    """Let others take each other's place while edges lead from them to it."""
    old = await story.actor.remember("Uses the old ledger.")
    new = await story.actor.remember("Uses the new ledger.")
    await story.actor.tie("ABOUT", old["id"], {"entity": story.entities[0]})
    await story.actor.tie("SUPPORTS", old["id"], story.memory)
    await story.actor.do("supersede", old["id"], {"by": new["id"]})
    story.beside += [old["id"], new["id"]]


async def fail(story: Story) -> None:
    """Let a projection of it fail with its words, and another die and be given up."""
    await story.send("PATCH", f"/v1/memories/{story.memory}", {"confidence": 0.9}, "writer")
    with psycopg.connect(story.actor.tenant.owner_url) as connection:
        tied = connection.execute(
            "SELECT id FROM edges WHERE %(id)s IN (source_memory_id, target_memory_id) "
            "UNION SELECT id FROM entity_links WHERE target_id = %(id)s",
            {"id": UUID(story.memory)},
        ).fetchall()
    its_own = {UUID(story.memory), *(row[0] for row in tied)}
    lease = await story.worker.queue.lease(story.tenant_id)
    assert lease
    for event in await story.worker.queue.claim(lease, 100):
        if event.aggregate_id in its_own:
            await story.worker.queue.fail(lease, event, ValueError(f"the graph can't hold {CANARY}"))
        else:
            await story.worker.queue.refund(lease, [event.id], None, 0)
    await story.worker.queue.release(lease)
    with psycopg.connect(story.actor.tenant.owner_url) as connection:
        connection.execute(
            "UPDATE outbox_events SET status = 'dead', finished_at = now() "
            "WHERE id = (SELECT max(id) FROM outbox_events WHERE aggregate_id = %s AND last_error IS NOT NULL)",
            (UUID(story.memory),),
        )
        connection.execute("UPDATE outbox_events SET available_at = now() WHERE status = 'pending'")
    dead = await story.send("GET", f"/v1/outbox/events?status=dead&aggregate_id={story.memory}")
    for event in dead["items"]:
        await story.send("POST", f"/v1/outbox/events/{event['id']}/discard", {"reason": f"{CANARY} is broken"})


async def compare(story: Story) -> None:
    """Damage the graph, let a comparison tell of it, and mend it again."""
    await drain(story.worker)
    backend = story.worker.backend
    there = await backend.dump(story.tenant_id)
    named = [ident for ident, node in there.entities.items() if CANARY in node.name]
    await backend.take_fence(story.tenant_id, "vandal")
    lost = GraphPatch(deleted_entities=named, deleted_memories=[story.memory])
    await backend.apply(story.tenant_id, "vandal", lost)
    for method, url, body in (
        ("GET", "/v1/graph/verify", None),
        ("POST", "/v1/graph/repair", {"dry_run": False}),
    ):
        await story.send(method, url, body)
        assert await verifier.take_job(story.worker)


async def absorb(story: Story) -> None:
    """Let it merge into a memory that is said to be the same, by a reviewer."""
    kept = await story.actor.remember("Two people met.")
    story.beside.append(kept["id"])
    review = str(uuid4())
    with psycopg.connect(story.actor.tenant.owner_url) as connection:
        connection.execute(
            "INSERT INTO memory_reviews (tenant_id, id, memory_id, other_id, kind, tier, rule) "
            "VALUES (%s, %s, %s, %s, 'duplicate', 'older', 'near')",
            (story.tenant_id, review, story.memory, kept["id"]),
        )
    body = {"decision": "merge", "reason": f"both speak of {CANARY}"}
    await story.send("POST", f"/v1/reviews/{review}/decide", body, "reviewer")


CHAPTERS: dict[str, Chapter] = {
    chapter.__name__: chapter
    for chapter in (
        link,
        merge_entities,
        repeat,
        summarise,
        ask,
        correct,
        correct_towards,
        dispute,
        evidence,
        change,
        move_edges,
        compare,
        fail,
        absorb,
    )
}
"""What can happen to it, in an order in which all of it can."""
