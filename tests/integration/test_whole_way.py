"""The main job on real components, as a newcomer meets it: `memory-os up`, facts in over REST, a question, a pack.

Postgres, FalkorDB, the API, a worker and the bundled model are all real, and every limit is the default.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.fixtures.postgres import make_open_directory
from tests.fixtures.waiting import wait_for

from memory_os.embedded.ready import ReadyFile

FACTS = {
    "pizza": ("Skill", "I make Detroit-style pizza from scratch, from the dough up"),
    "smoker": ("Attribute", "I have a pellet smoker in the back yard"),
    "cooking": ("Behavior", "I cook 90 % of the meals for the two of us"),
    "truck": ("Opportunity", "I keep thinking about a spring roll food truck"),
    "fi": ("Goal", "Reach financial independence before fifty"),
    "maker": ("Value", "We both want to build things with our hands"),
    "grams": ("Preference", "I weigh ingredients in grams when I bake"),
    "knives": ("Resource", "The good knives are in the second drawer"),
    "market": ("Reference", "The Saturday market sells fresh herbs"),
    "budget": ("Decision", "The tax return is filed by an accountant"),
    "deploy": ("Reference", "Deploys are blue-green and run on Tuesdays"),
    "sleep": ("Insight", "Sleep is better on days without screens"),
}
EDGES = (
    ("pizza", "SUPPORTS", "cooking"),
    ("smoker", "SUPPORTS", "cooking"),
    ("grams", "SUPPORTS", "cooking"),
    ("cooking", "ENABLES", "truck"),
    ("truck", "ADVANCES", "fi"),
    ("maker", "INFLUENCES", "truck"),
)


@pytest.fixture(scope="module")
def stack() -> Iterator[ReadyFile]:
    """A whole stack in a folder of its own."""
    home = make_open_directory("memory-os-whole-")
    ready = home / "ready.json"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_", "PG"))}
    command = [sys.executable, "-m", "memory_os", "up", "--home", str(home / "home"), "--port", "0"]
    with (home / "up.log").open("wb") as log:
        process = subprocess.Popen([*command, "--ready-file", str(ready)], env=environment, stdout=log, stderr=log)
    try:
        wait_for(lambda: ready.exists() or process.poll() is not None, seconds=120)
        assert ready.exists(), (home / "up.log").read_text()
        yield ReadyFile.read(ready)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def client(stack: ReadyFile) -> Iterator[httpx.Client]:
    """A client with the token of a new tenant, so that the sample is not in the way."""
    root = {"Authorization": f"Bearer {stack.root_token}"}
    made = httpx.post(f"{stack.api}/v1/tenants", json={"name": "cook"}, headers=root).raise_for_status().json()
    headers = {"Authorization": f"Bearer {made['token']['token']}"}
    with httpx.Client(base_url=stack.api, headers=headers, timeout=30) as opened:
        yield opened


@pytest.fixture(scope="module")
def facts(client: httpx.Client) -> dict[str, str]:
    """The facts and their edges, in the graph too."""
    ids: dict[str, str] = {}
    position = 0
    for name, (label, text) in FACTS.items():
        stored = client.post("/v1/memories", json={"text": text, "label": label}).raise_for_status().json()
        ids[name] = stored["memory"]["id"]
    for source, kind, target in EDGES:
        body = {"type": kind, "from": {"memory": ids[source]}, "to": {"memory": ids[target]}}
        position = client.post("/v1/edges", json=body).raise_for_status().json()["position"]
    wait_for(lambda: client.get("/v1/graph/stats").json()["position"] >= position, seconds=30)
    return ids


def ask(client: httpx.Client, query: str, **fields: Any) -> dict[str, Any]:
    return dict(client.post("/v1/retrieve", json={"query": query, **fields}).raise_for_status().json())


def test_a_mug_cake_brings_the_cooking_thread_with_its_paths(client: httpx.Client, facts: dict[str, str]) -> None:
    assert not any("cake" in text for _, text in FACTS.values())
    pack = ask(client, "Do you have a good mug cake recipe?")
    found = {item["id"]: item for item in pack["items"]}
    for name in ("cooking", "pizza", "truck", "fi"):
        assert facts[name] in found, [item["text"] for item in pack["items"]]
    for name in ("deploy", "sleep", "budget"):
        assert facts[name] not in found
    assert pack["graph"]["state"] == "current"
    financial = found[facts["fi"]]
    assert "graph" in financial["arms"]
    assert "vector" not in financial["arms"]
    assert financial["path"][-1]["via"] == "ADVANCES"
    assert "-ADVANCES->" in financial["why"][0]
    assert len(pack["items"]) <= 8


def test_what_do_i_know_about_john_walks_his_edges(client: httpx.Client) -> None:
    john = client.post("/v1/memory/entities", json={"name": "John", "entity_type": "person"}).json()["entity"]["id"]
    ids = {}
    for name, label, text in (
        ("wine", "Insight", "He knows a lot about wine"),
        ("roommate", "Insight", "He reminds me of a college roommate"),
        ("deal", "Decision", "The Q3 timeline was moved by two weeks"),
    ):
        stored = client.post("/v1/memories", json={"text": text, "label": label}).raise_for_status().json()
        ids[name] = stored["memory"]["id"]
    for name in ("wine", "roommate"):
        body = {"type": "ABOUT", "from": {"memory": ids[name]}, "to": {"entity": john}}
        client.post("/v1/edges", json=body).raise_for_status()
    link = {"layer": "memory", "target_id": ids["deal"], "relationship": "decided"}
    position = client.post(f"/v1/memory/entities/{john}/links", json=link).raise_for_status().json()["position"]
    wait_for(lambda: client.get("/v1/graph/stats").json()["position"] >= position, seconds=30)
    pack = ask(client, "What do I know about John?")
    found = {item["id"]: item for item in pack["items"]}
    assert set(ids.values()) <= set(found), [item["text"] for item in pack["items"]]
    assert any("John" in why and "ABOUT" in why for why in found[ids["wine"]]["why"])
    assert any("decided" in why for why in found[ids["deal"]]["why"])
    context = client.get(f"/v1/memory/entities/{john}/context").raise_for_status().json()
    assert context["entity"]["name"] == "John"


def test_a_deleted_fact_is_gone_from_the_very_next_answer(client: httpx.Client, facts: dict[str, str]) -> None:
    canary = "The wine cellar code is 4711-canary"
    stored = client.post("/v1/memories", json={"text": canary, "label": "Attribute"}).json()["memory"]["id"]
    assert canary in [item["text"] for item in ask(client, "What is the wine cellar code?")["items"]]
    client.delete(f"/v1/memories/{stored}").raise_for_status()
    assert canary not in str(ask(client, "What is the wine cellar code?"))
    assert facts


def test_the_reference_page_asks_no_other_host(stack: ReadyFile) -> None:
    page = httpx.get(f"{stack.api}/schema").raise_for_status().text
    assert "swagger-ui-bundle.js" in page
    assert "https://" not in page
    script = httpx.get(f"{stack.api}/schema/assets/swagger-ui-bundle.js")
    assert script.status_code == 200
    assert httpx.get(f"{stack.api}/schema/openapi.json").json()["openapi"].startswith("3.1")


def test_the_ready_file_names_what_runs(stack: ReadyFile) -> None:
    for pid in (stack.pids.supervisor, stack.pids.postgres, stack.pids.falkor, stack.pids.api, *stack.pids.workers):
        assert pid is not None
        os.kill(pid, 0)
