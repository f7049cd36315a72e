"""What tests of corrections share: memories, who proposes, who decides, and what is asked afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from tests.fixtures.acting import Actor
from tests.fixtures.service import TestTenant

Json = dict[str, Any]
CORRECTIONS = "/v1/corrections"


class Desk:
    """Readers who propose, reviewers who decide, and everybody's questions."""

    def __init__(self, client: httpx.AsyncClient, tenant: TestTenant) -> None:
        self.client = client
        self.tenant = tenant
        self.actor = Actor(client, tenant)

    async def send(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        role: str = "reader",
        user: str | None = None,
        groups: Sequence[str] = (),
        **query: Any,
    ) -> httpx.Response:
        """Any call."""
        headers = self.tenant.headers(role, user=user, groups=groups)
        content = {} if body is None else {"json": body}
        return await self.client.request(method, path, headers=headers, params=query, **content)

    async def get(self, path: str, **how: Any) -> Json:
        """A read that must succeed."""
        answer = await self.send("GET", path, **how)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def try_to_propose(
        self, target: str, kind: str, proposal: Json | None = None, *, how: Json | None = None, **fields: Any
    ) -> httpx.Response:
        """Propose a correction; `how` says who does."""
        body = {"target": target, "kind": kind, "proposal": proposal or {}, "reason": "It was said otherwise."}
        return await self.send("POST", CORRECTIONS, {**body, **fields}, **(how or {}))

    async def propose(self, target: str, kind: str, proposal: Json | None = None, **fields: Any) -> Json:
        """Like `try_to_propose`, and it must succeed."""
        answer = await self.try_to_propose(target, kind, proposal, **fields)
        assert answer.status_code == 201, answer.text
        return dict(answer.json()["correction"])

    async def decide(self, correction: Json, verb: str, body: Json | None = None, **how: Any) -> httpx.Response:
        """Apply or reject it, as a reviewer unless it is said otherwise."""
        return await self.send("POST", f"{CORRECTIONS}/{correction['id']}/{verb}", body, **{"role": "reviewer", **how})

    async def apply(self, correction: Json, body: Json | None = None, **how: Any) -> Json:
        """Apply it; that must succeed."""
        answer = await self.decide(correction, "apply", body, **how)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def correct(self, target: str, kind: str, proposal: Json | None = None, **fields: Any) -> Json:
        """Propose a correction and apply it."""
        return await self.apply(await self.propose(target, kind, proposal, **fields))

    async def undo(self, memory: str, act: str) -> None:
        """Undo an act, as a reviewer."""
        answer = await self.send("POST", f"/v1/memories/{memory}/acts/{act}/undo", role="reviewer")
        assert answer.status_code == 200, answer.text

    async def source(self, text: str, **fields: Any) -> str:
        """Store a source with a passage; its id."""
        how = {"role": "writer", "user": fields.pop("user", None)}
        body = {"kind": "document", "title": "Letter", "passages": [{"text": text}], **fields}
        answer = await self.send("POST", "/v1/sources", body, **how)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["source"]["id"])

    async def ask(self, query: str, **fields: Any) -> Json:
        """A pack for nobody, found by words alone."""
        body = {"query": query, "arms": {"vector": False, "graph": False}, **fields}
        answer = await self.send("POST", "/v1/retrieve", body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def texts(self, query: str, **fields: Any) -> list[str]:
        """The texts of the memories of a pack, sorted."""
        return sorted(item["text"] for item in (await self.ask(query, **fields))["items"] if item["type"] == "memory")


def pointers(answer: httpx.Response) -> list[str]:
    """What a refusal points at."""
    assert answer.status_code == 422, answer.text
    return [error["pointer"] for error in answer.json()["errors"]]


@pytest.fixture
def desk(client: httpx.AsyncClient, tenant: TestTenant) -> Desk:
    """A tenant's desk."""
    return Desk(client, tenant)
