"""A memory whose title alone says what it is about is found by its meaning."""

from __future__ import annotations

import httpx
import pytest
from tests.fixtures.service import TestTenant
from tests.integration.retrieval.conftest import Ask, Memory

pytestmark = pytest.mark.anyio

MEANING = {"text": False, "graph": False}
TITLE, TEXT = "Brewing espresso at home", "Eighteen grams in, thirty-six out, in half a minute."
QUESTION = "how do i make good coffee?"


async def test_a_title_is_found_by_what_it_means(remember: Memory, ask: Ask) -> None:
    plain = await remember(TEXT, dedup="off")
    titled = await remember(TEXT, title=TITLE, dedup="off")
    found = [item["id"] for item in (await ask(QUESTION, arms=MEANING))["items"]]
    assert titled in found
    assert plain not in found


async def test_it_is_found_as_soon_as_it_has_the_title_and_no_longer(
    client: httpx.AsyncClient, tenant: TestTenant, remember: Memory, ask: Ask
) -> None:
    memory = await remember(TEXT)
    assert (await ask(QUESTION, arms=MEANING))["no_match"]
    for title, found in ((TITLE, [memory]), ("Plant log", [])):
        answer = await client.patch(f"/v1/memories/{memory}", json={"title": title}, headers=tenant.headers())
        assert answer.status_code == 200, answer.text
        assert [item["id"] for item in (await ask(QUESTION, arms=MEANING))["items"]] == found
