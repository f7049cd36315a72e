"""What agents tell, as they tell it, with the bundled model: one memory where it is one, and no fact lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest
from tests.fixtures.acting import canonical
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.settings import Settings

pytestmark = pytest.mark.anyio

MEMORIES = "/v1/memories"


@pytest.fixture
def service_settings(service_settings: Settings) -> Settings:
    return service_settings.model_copy(update={"embedding_provider": "bundled"})


class Agent:
    """A client that tells and asks."""

    def __init__(self, client: httpx.AsyncClient, tenant: TestTenant, urls: DatabaseUrls) -> None:
        self.client = client
        self.headers = tenant.headers()
        self.urls = urls

    async def tell(self, text: str, label: str = "Attribute", **fields: Any) -> dict[str, Any]:
        body = {"text": text, "label": label, **fields}
        answer = await self.client.post(MEMORIES, json=body, headers=self.headers)
        assert answer.is_success, answer.text
        return dict(answer.json())

    async def read(self, ident: str) -> dict[str, Any]:
        return dict((await self.client.get(f"{MEMORIES}/{ident}", headers=self.headers)).json())

    async def post(self, path: str, body: Any) -> httpx.Response:
        return await self.client.post(path, json=body, headers=self.headers)

    async def ask(self, query: str) -> dict[str, Any]:
        return dict((await self.post("/v1/retrieve", {"query": query})).json())

    def minutes_pass(self, minutes: int) -> None:
        with psycopg.connect(self.urls.owner_url) as connection:
            connection.execute("UPDATE memories SET created_at = created_at - %s", (timedelta(minutes=minutes),))


@pytest.fixture
def agent(client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls) -> Agent:
    return Agent(client, tenant, database_urls)


async def test_the_rewordings_of_a_long_conversation_are_one_memory(agent: Agent) -> None:
    told = [
        "Alex prefers direct feedback",
        "Alex prefers direct feedback.",
        "alex prefers  direct feedback",
        "Direct feedback is preferred by Alex",
        "Alex favors direct feedback",
        "ALEX PREFERS DIRECT FEEDBACK",
    ]
    answers = []
    for text in told:
        answers.append(await agent.tell(text, "Preference"))
        agent.minutes_pass(4)
    answers.append(await agent.tell("Alex prefers direct feedback", "Behavior"))
    assert [answer["outcome"] for answer in answers] == ["created", *["merged"] * 6]
    assert {answer["memory"]["id"] for answer in answers} == {answers[0]["memory"]["id"]}
    assert answers[-1]["memory"]["label"] == "Preference"


async def test_a_new_weight_is_a_supersession_candidate_and_says_so(agent: Agent) -> None:
    old = (await agent.tell("Alex weighs 178 lbs"))["memory"]
    answer = await agent.tell("Alex weighs 182 lbs")
    assert (answer["outcome"], answer["rule"]) == ("review", "supersession_candidate")
    assert [(found["id"], found["verdict"]) for found in answer["candidates"]] == [(old["id"], "supersede")]
    assert any("178" in line and "182" in line for line in answer["candidates"][0]["guard"])
    taken = await agent.tell("Alex weighs 185 lbs", on_conflict="supersede")
    assert taken["outcome"] == "superseded"


async def test_the_opposite_is_a_dispute_and_both_are_shown(agent: Agent) -> None:
    first = (await agent.tell("Alex likes cilantro", "Preference"))["memory"]
    answer = await agent.tell("Alex does not like cilantro", "Preference")
    assert answer["outcome"] == "disputed"
    pack = await agent.ask("Does Alex like cilantro?")
    shown = {item["id"]: item["status"] for item in pack["items"]}
    assert shown == {first["id"]: "disputed", answer["memory"]["id"]: "disputed"}
    assert pack["conflicts"]


async def test_an_agent_corrects_itself_by_what_it_is_told(agent: Agent) -> None:
    ends = [(await agent.tell(text, "Skill"))["memory"]["id"] for text in ("Alex bakes bread", "Noor mends bicycles")]
    body: dict[str, Any] = {"type": "RELATES_TO", "from": {"memory": ends[0]}, "to": {"memory": ends[1]}}
    refused = await agent.post("/v1/edges", body)
    assert refused.status_code == 422
    assert len(refused.json()["allowed"]) == 18
    body["type"] = refused.json()["allowed"][0]
    assert (await agent.post("/v1/edges", body)).status_code == 201
    refused = await agent.post(MEMORIES, {"text": "Alex bakes bread", "label": "Fact"})
    assert refused.json()["did_you_mean"] == "Attribute"


async def test_a_superseded_goal_hands_its_context_over_and_keeps_its_provenance(agent: Agent) -> None:
    """And undoing it restores the exact rows."""
    old = (await agent.tell("Run a marathon in under four hours", "Goal"))["memory"]["id"]
    habit = (await agent.tell("Alex trains on Tuesdays", "Behavior"))["memory"]["id"]
    source = (await agent.tell("Notes of the talk with the trainer", "Resource"))["memory"]["id"]
    for type_, ends in (("ADVANCES", (habit, old)), ("EXTRACTED_FROM", (old, source))):
        body = {"type": type_, "from": {"memory": ends[0]}, "to": {"memory": ends[1]}}
        assert (await agent.post("/v1/edges", body)).status_code == 201
    before = canonical(agent.urls)
    done = (await agent.post(f"{MEMORIES}/{old}/supersede", {"text": "Run a half marathon in under two hours"})).json()
    new = done["memory"]["id"]
    params = {"memory": new}
    edges = (await agent.client.get("/v1/edges", params=params, headers=agent.headers)).json()["items"]
    assert sorted((edge["type"], edge["from"]["memory"], edge["to"]["memory"]) for edge in edges) == [
        ("ADVANCES", habit, new),
        ("SUPERSEDES", new, old),
    ]
    params = {"memory": old, "type": "EXTRACTED_FROM"}
    kept = (await agent.client.get("/v1/edges", params=params, headers=agent.headers)).json()["items"]
    assert [edge["to"]["memory"] for edge in kept] == [source]
    assert (await agent.read(old))["superseded_by"] == new
    undone = await agent.post(f"{MEMORIES}/{old}/acts/{done['act_id']}/undo", {})
    assert undone.status_code == 200, undone.text
    after = canonical(agent.urls)
    assert after["edges"] == before["edges"]
    assert [row for row in after["memories"] if str(row["id"]) != new] == before["memories"]


async def test_no_fact_of_a_day_is_lost_to_a_rule(agent: Agent) -> None:
    """Near-misses that no similarity tells apart."""
    told = [
        "Room 101 is booked on Monday",
        "Room 102 is booked on Monday",
        "Room 101 is booked on Tuesday",
        "Anna pays Bert 40 euros for the ride",
        "Bert pays Anna 40 euros for the ride",
        "Anna pays Bert 45 euros for the ride",
        "The flight UA123 leaves at 9:30",
        "The flight UA124 leaves at 9:30",
        "Dr. Sander treats the thyroid of Otto",
        "Dr. Zander treats the thyroid of Otto",
        "The 2023 tax return is filed",
        "The 2024 tax return is filed",
        "The tax return of 2024 is not filed",
    ]
    started = datetime.now(UTC)
    outcomes = [(await agent.tell(text))["outcome"] for text in told]
    assert "merged" not in outcomes, list(zip(told, outcomes, strict=True))
    listed = (await agent.client.get(MEMORIES, params={"limit": 50}, headers=agent.headers)).json()["items"]
    assert {item["text"] for item in listed} == set(told)
    assert datetime.now(UTC) - started < timedelta(minutes=2)
