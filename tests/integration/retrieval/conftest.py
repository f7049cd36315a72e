"""Retrieval is tested with the bundled model: what is near in meaning is the point."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from tests.fixtures.service import TestTenant

from memory_os.settings import Settings

Memory = Callable[..., Awaitable[str]]
Ask = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    """Settings of a service with the bundled embedder."""
    return service_settings.model_copy(update={"embedding_provider": "bundled", "memory_os_allow_test_embedder": False})


@pytest.fixture
def remember(client: httpx.AsyncClient, tenant: TestTenant) -> Memory:
    """Stores a memory and answers its id; `user` acts, the other fields go into the body."""

    async def store(text: str, *, user: str | None = None, groups: tuple[str, ...] = (), **fields: Any) -> str:
        headers = tenant.headers(user=user, groups=groups)
        body = {"text": text, "label": "Attribute", **fields}
        answer = await client.post("/v1/memories", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["memory"]["id"])

    return store


@pytest.fixture
def ask(client: httpx.AsyncClient, tenant: TestTenant) -> Ask:
    """Asks memory and answers the pack; `user` acts, `path` is the call, the other fields go into the body."""

    async def retrieve(
        query: str, *, user: str | None = None, groups: tuple[str, ...] = (), path: str = "/v1/retrieve", **fields: Any
    ) -> dict[str, Any]:
        headers = tenant.headers("reader", user=user, groups=groups)
        answer = await client.post(path, json={"query": query, **fields}, headers=headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    return retrieve
