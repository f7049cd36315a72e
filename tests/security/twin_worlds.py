"""Tells a history in a tenant, with or without what the reader may not read, and asks everything as the reader."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import httpx
from tests.fixtures.service import TestTenant, bearer
from tests.security.twin_plans import LABELS, PERSONS, THINGS, Plan, Relation, Spec, Who

Json = dict[str, Any]

PATHS: Mapping[str, str] = {
    "memory": "/v1/memories",
    "entity": "/v1/memory/entities",
    "observation": "/v1/memory/observations",
    "procedure": "/v1/memory/procedures",
    "outcome": "/v1/memory/outcomes",
    "source": "/v1/sources",
}
UNDER: Mapping[str, tuple[str, ...]] = {
    "memory": (
        *("history", "provenance", "retrievals", "evidence"),
        *("decisions", "tasks", "support", "support?include=history", "sources", "changes"),
    ),
    "entity": (
        *("links", "context", "acts"),
        *("everything", "everything?include=history", "decisions", "tasks?status=all", "changes"),
    ),
    "source": ("passages", "records"),
}
"""What is read of one record beside the record itself."""


OVERSEEN = (
    *(("operator", f"/v1/outbox/{what}") for what in ("stats", "events", "events?limit=200&status=done")),
    *(("operator", f"/v1/graph/{what}") for what in ("stats", "verifications", "rebuilds")),
    ("admin", "/v1/audit?limit=200"),
    *(("reviewer", f"/v1/cycles{what}") for what in ("", "/schedule")),
)
"""What shows those who run the service that something happened, and to which id, but no words of it."""


@dataclass(frozen=True)
class Asked:
    """A question, and its answer; what is not `compared` tells operators of everything by id, and of no words."""

    question: str
    status: int
    answer: Any
    raw: str
    compared: bool = True


@dataclass
class Telling:
    """A history in one tenant.

    Args:
        client: Of the service.
        tenant: A new one.
        plan: The history.
        whole: With what the reader may not read.
        settle: Lets the worker and the log follow.
    """

    client: httpx.AsyncClient
    tenant: TestTenant
    plan: Plan
    whole: bool
    settle: Callable[[], Awaitable[None]]
    _tokens: dict[tuple[Who, str], str] = field(default_factory=dict)
    _middle: str = ""

    def headers(self, who: Who, role: str) -> dict[str, str]:
        """Headers of a request of theirs, with a token that is bound to them."""
        key = (who, role)
        if key not in self._tokens:
            self._tokens[key] = self.tenant.add_token(role, user=who.user, groups=who.groups)
        return bearer(self._tokens[key]) | {"X-Request-Id": "one-request"}

    async def tell(self) -> dict[str, int]:
        """Store everything; gives the status of what the reader may read of it."""
        statuses: dict[str, int] = {}
        for spec in self.plan.records:
            readable = spec.readable_by(self.plan.reader)
            if self.whole or readable:
                answer = await self._send(spec.owner, "POST", PATHS[spec.kind], _body(spec))
                if readable:
                    statuses[f"record {spec.number}"] = answer.status_code
            if spec.number % 3 == 0:
                await self.settle()  # what is derived is made at several times
        self._middle = datetime.now(UTC).isoformat()
        for relation in self.plan.relations:
            who, readable = relation.author(), relation.readable_by(self.plan.reader)
            if relation.kind == "retrieval" and who is not None and who.user == self.plan.reader.user:
                continue  # they saw what everybody might read then, and the log says so
            if who is not None and (self.whole or readable):
                answer = await self._relate(who, relation)
                if readable:
                    statuses[f"relation {relation.number}"] = answer.status_code
        for spec in self.plan.records:
            if spec.narrowed and spec.visibility != "tenant" and (self.whole or spec.readable_by(self.plan.reader)):
                await self._send(spec.owner, "PATCH", f"{PATHS[spec.kind]}/{spec.id}", _visibility(spec))
        return statuses

    async def _send(self, who: Who, method: str, path: str, body: Json) -> httpx.Response:
        answer = await self.client.request(method, path, json=body, headers=self.headers(who, "writer"))
        assert answer.status_code < 500, answer.text
        return answer

    async def _relate(self, who: Who, relation: Relation) -> httpx.Response:
        start, end = relation.start, relation.end
        memory = f"/v1/memories/{start.id}"
        path, body = {
            "edge": (
                "/v1/edges",
                {
                    "type": relation.edge_type,
                    "from": {start.kind: start.id},
                    "to": {end.kind: end.id},
                    "id": relation.id,
                },
            ),
            "link": (
                f"/v1/memory/entities/{start.id}/links",
                {"layer": end.kind, "target_id": end.id, "relationship": relation.word, "id": relation.id},
            ),
            "evidence": (f"{memory}/evidence", {"source_id": end.id, "support": "supports", "widen": True}),
            "correction": (
                "/v1/corrections",
                {"target": start.id, "kind": "dispute", "reason": relation.word}
                | ({"source_id": end.id} if end.kind == "source" and end.readable_by(self.plan.reader) else {}),
            ),
            "dispute": (f"{memory}/dispute", {"reason": relation.word}),
            "archive": (f"{memory}/archive", {"reason": relation.word}),
            "retrieval": ("/v1/retrieve", {"query": f"{relation.word} {start.text}"}),
        }[relation.kind]
        return await self._send(who, "POST", path, body)

    async def ask_all(self) -> list[Asked]:
        """Everything that reads, as the reader."""
        return [asked async for asked in self._questions()]

    async def _questions(self) -> AsyncIterator[Asked]:
        for path in [*self._lists(), *self._singles()]:
            yield await self.ask("GET", path)
        for path in PATHS.values():
            async for asked in self._pages(path):
                yield asked
        async for asked in self._derived():
            yield asked
        for body in self._retrievals():
            yield await self.ask("POST", "/v1/retrieve", body)
        for query in (THINGS[0], *PERSONS[:2]):
            body = {"query": query, "limits": {"paths": 50}}
            yield await self.ask("POST", "/v1/context", body)
            past = await self.ask("POST", "/v1/retrieve", {**body, "believed_at": self._middle})
            yield replace(past, question=f"{query} in the middle")
        for spec in self.plan.records:
            checked = {"text": spec.text.replace(spec.canary, "Main"), "label": spec.label}
            yield await self.ask("POST", "/v1/memories/check", checked)
            yield await self.ask("POST", "/v1/corrections", {"target": spec.id, "kind": "dispute", "reason": "x"})
        for path in ("/v1/graph/stats", "/v1/vocabulary"):
            yield await self.ask("GET", path)
        await self.settle()
        logged = await self.ask("GET", "/v1/retrievals?limit=200")
        logged.answer["items"].sort(
            key=lambda item: [str(item[name]) for name in ("query", "as_of", "items", "omitted")]
        )
        yield logged  # which was written first is up to the log
        for path in ("/v1/reviews", "/v1/corrections"):
            yield await self.ask("GET", path, role="reviewer")
        for role, path in OVERSEEN:
            yield replace(await self.ask("GET", path, role=role), compared=False)

    async def ask(self, method: str, path: str, body: Json | None = None, role: str = "reader") -> Asked:
        """Ask one thing as the reader."""
        headers = self.headers(self.plan.reader, role)
        answer = await self.client.request(method, path, json=body, headers=headers)
        assert answer.status_code < 500, answer.text
        raw = answer.text + repr(sorted(answer.headers.items()))
        return Asked(f"{method} {path} {json.dumps(body)}", answer.status_code, answer.json(), raw)

    def _lists(self) -> list[str]:
        people = {who.user for who in self.plan.people if who.user} | {"a", "%"}
        users = [str(httpx.QueryParams({"user_id": user})) for user in sorted(people)]
        found = [*PATHS.values(), "/v1/edges", "/v1/memory/entities?declared=false", "/v1/changes?limit=200"]
        found += [f"{path}?{user}" for path in ("/v1/memories", "/v1/memory/entities") for user in users]
        found += [f"/v1/memories?label={label}" for label in LABELS]
        found += [f"/v1/memories?{name}={spec.canary}" for spec in self.plan.records for name in ("tag", "subject")]
        found += [f"/v1/memories?status={status}" for status in ("active", "disputed", "archived")]
        found += [f"/v1/sources?author={spec.canary}" for spec in self.plan.records]
        names = [*PERSONS, *(f"Kiln {spec.canary}" for spec in self.plan.records)]
        found += [f"/v1/memory/entities?name={name}&declared={flag}" for name in names for flag in ("true", "false")]
        found += [f"/v1/edges?{kind}={spec.id}" for spec in self.plan.records for kind in ("memory", "entity")]
        return found

    def _singles(self) -> list[str]:
        found = []
        for spec in self.plan.records:
            one = f"{PATHS[spec.kind]}/{spec.id}"
            found += [one, *(f"{one}/{what}" for what in UNDER.get(spec.kind, ()))]
        return found + [f"/v1/edges/{relation.id}" for relation in self.plan.relations]

    async def _pages(self, path: str) -> AsyncIterator[Asked]:
        """A list two by two, to its end."""
        query: dict[str, str] = {"limit": "2"}
        while True:
            asked = await self.ask("GET", f"{path}?{httpx.QueryParams(query)}")
            cursor = asked.answer["next_cursor"]
            page = asked.question.split("cursor")[0]
            yield Asked(page, asked.status, asked.answer, asked.raw)
            if cursor is None:
                return
            query["cursor"] = cursor

    async def _derived(self) -> AsyncIterator[Asked]:
        """What is known of those who are only named."""
        listed = await self.ask("GET", "/v1/memory/entities?declared=false&limit=200")
        for item in listed.answer["items"]:
            for path in ("", "/context", "/links", "/everything", "/changes"):
                yield await self.ask("GET", f"/v1/memory/entities/{item['id']}{path}")

    def _retrievals(self) -> list[Json]:
        arms = [{"vector": True, "text": False, "graph": False}, {"vector": False, "text": True, "graph": False}]
        arms += [{"vector": False, "text": False, "graph": True}, {"vector": True, "text": True, "graph": True}]
        said = [f"Who sold the {THINGS[0]}?", f"What about {PERSONS[0]} and {PERSONS[1]}?"]
        said += [f"{spec.canary} {spec.thing}" for spec in self.plan.hidden()[:2]]
        found: list[Json] = [{"query": query, "arms": chosen} for query in said for chosen in arms]
        found += [{"query": query, "include": ["history"]} for query in said]
        found += [{"query": query, "as_of": "2024-06-01T00:00:00Z"} for query in said[:2]]
        found += [{"query": query, "format": "markdown"} for query in said[:2]]
        found += [{"query": said[0], "limits": {"memories": 2}}, {"query": said[0], "budget_tokens": 300}]
        # So many paths that all there are take part: which of more do is up to weights that count hidden edges.
        return [{**body, "limits": {**body.get("limits", {}), "paths": 50}} for body in found]


def _body(spec: Spec) -> Json:
    """What stores a record."""
    wide = {"visibility": "tenant"} if spec.narrowed else _visibility(spec)
    common: Json = {"id": spec.id, **wide}
    title = f"Kiln {spec.canary}"
    if spec.kind == "memory":
        told = {"text": spec.text, "label": spec.label, "occurred_at": f"2024-01-{spec.number + 1:02d}T00:00:00Z"}
        words = {"tags": [spec.canary], "subject": spec.canary, "title": title, "metadata": {spec.canary: spec.canary}}
        return {**common, **told, **words, "dedup": "gate" if spec.gated else "off"}
    if spec.kind == "entity":
        words = {"name": title, "aliases": [f"Forge {spec.canary}"], "summary": spec.text}
        return {**common, **words, "entity_type": "thing"}
    if spec.kind == "source":
        words = {"title": title, "author": spec.canary, "uri": f"https://example.org/{spec.canary}"}
        passages = [{"text": f"{spec.text} {word}"} for word in ("First.", "Second.")]
        return {**common, **words, "kind": "document", "source_date": "2024-01-01T00:00:00Z", "passages": passages}
    return {**common, "title": title, "summary": spec.text, "payload": {spec.canary: spec.canary}}


def _visibility(spec: Spec) -> Json:
    readers = {"users": list(spec.users), "groups": list(spec.groups)}
    return {"visibility": spec.visibility} | ({"readers": readers} if spec.visibility == "restricted" else {})
