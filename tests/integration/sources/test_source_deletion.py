"""Everything that came from a source, and what becomes of it when the source is deleted; the graph agrees each time."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.fixtures.acting import Actor, canonical, rows_of
from tests.fixtures.citing import MEMORIES, SOURCES, Citer, Json, cites
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.worker import drain, dump

from memory_os.settings import Settings
from memory_os_workers import verifier
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

ENTITIES = "/v1/memory/entities"


class Library:
    """One source, and memories that have to do with it in every way."""

    def __init__(self, citer: Citer) -> None:
        self.citer = citer
        self.source = self.other = self.entity = self.link = ""
        self.ids: dict[str, str] = {}

    async def fill(self) -> None:
        citer = self.citer
        self.source = await citer.source("We ship on Friday.", "Bob Stone tests.", title="Standup", uri="chat://7")
        self.other = await citer.source("We ship on Friday, says the plan.")
        mine, theirs = cites(self.source, quote="on Friday"), cites(self.other, quote="says the plan")
        for name, label, evidence in (
            ("alone", "Attribute", [mine]),
            ("backed", "Attribute", [mine, theirs]),
            ("opposed", "Attribute", [cites(self.source, "supports"), cites(self.other, "contradicts")]),
            ("contradicted", "Attribute", [cites(self.source, "contradicts")]),
            ("mentioned", "Event", [cites(self.source, "mentions")]),
            ("archived", "Attribute", [mine]),
            ("superseded", "Attribute", [mine]),
            ("derived", "Insight", []),
            ("again", "Insight", []),
            ("sideways", "Insight", []),
            ("apart", "Attribute", []),
        ):
            self.ids[name] = await citer.memory(f"Bob Stone: {name}.", *evidence, label=label)
        await citer.tie("EXTRACTED_FROM", self.ids["derived"], self.ids["backed"])
        await citer.tie("EXTRACTED_FROM", self.ids["again"], self.ids["derived"])
        await citer.tie("EXTRACTED_FROM", self.ids["sideways"], self.ids["contradicted"])
        await citer.tie("SUPPORTS", self.ids["apart"], self.ids["alone"])
        await citer.post(f"{MEMORIES}/{self.ids['archived']}/archive", {})
        body = {"by": self.ids["apart"]}
        assert (await citer.post(f"{MEMORIES}/{self.ids['superseded']}/supersede", body)).status_code == 201
        declared = await citer.post(ENTITIES, {"name": "Ann Lee", "entity_type": "person"})
        self.entity = declared.json()["entity"]["id"]
        link = {"layer": "source", "target_id": self.source, "relationship": "wrote"}
        linked = await citer.post(f"{ENTITIES}/{self.entity}/links", link)
        assert linked.status_code == 201, linked.text
        self.link = linked.json()["link"]["id"]

    def named(self, ids: list[str]) -> set[str]:
        names = {ident: name for name, ident in self.ids.items()}
        return {names[ident] for ident in ids}

    async def statuses(self) -> dict[str, str]:
        return {name: (await self.citer.get(f"{MEMORIES}/{ident}"))["status"] for name, ident in self.ids.items()}


@pytest.fixture(params=["networkx", "falkor"])
def service_settings(
    request: pytest.FixtureRequest, service_settings: Settings, falkor_server: FalkorProcess, falkor_prefix: str
) -> Settings:
    """Settings of a service on each of the backends in turn."""
    falkor = {"falkor_host": falkor_server.host, "falkor_port": falkor_server.port, "graph_prefix": falkor_prefix}
    return service_settings.model_copy(update={"graph_backend": request.param, **falkor})


@pytest.fixture
async def library(citer: Citer) -> Library:
    made = Library(citer)
    await made.fill()
    return made


async def assert_graph_is_equal(citer: Citer, worker: WorkerContext) -> None:
    await drain(worker)
    operator = citer.tenant.headers("operator")
    asked = await citer.client.get("/v1/graph/verify", params={"wait_s": 0}, headers=operator)
    assert asked.status_code == 202, asked.text
    assert await verifier.take_job(worker)
    path = f"/v1/graph/verifications/{asked.json()['id']}"
    found = (await citer.client.get(path, headers=operator)).json()
    assert (found["status"], found["equal"], found["differences"]) == ("done", True, [])


async def test_everything_created_from_a_source_is_listed(
    citer: Citer, library: Library, worker: WorkerContext
) -> None:
    path = f"{SOURCES}/{library.source}/records"
    items = (await citer.get(path))["items"]
    assert items[0] == {
        "type": "entity",
        "id": library.entity,
        "label": "person",
        "text": "Ann Lee",
        "status": "active",
        "via": "link",
        "at": items[0]["at"],
        "link_id": library.link,
        "relationship": "wrote",
    }
    names = {ident: name for name, ident in library.ids.items()}
    found = {names[one["id"]]: (one["via"], one.get("support"), one["status"]) for one in items[1:]}
    assert found == {
        "alone": ("evidence", "states", "active"),
        "backed": ("evidence", "states", "active"),
        "opposed": ("evidence", "supports", "active"),
        "contradicted": ("evidence", "contradicts", "active"),
        "mentioned": ("evidence", "mentions", "active"),
        "archived": ("evidence", "states", "archived"),
        "superseded": ("evidence", "states", "superseded"),
        "derived": ("derived", None, "active"),
        "again": ("derived", None, "active"),
    }
    paged: list[Json] = []
    cursor: dict[str, Any] = {}
    while True:
        page = await citer.get(path, limit=4, **cursor)
        paged += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert paged == items
    assert len((await citer.get(f"{SOURCES}/{library.other}/records"))["items"]) == 4
    await assert_graph_is_equal(citer, worker)
    graph = await dump(worker, citer.tenant.tenant_id)
    assert library.link in graph.links


@pytest.mark.parametrize(
    ("policy", "archived", "retracted"),
    [
        ("keep", set(), set()),
        ("orphan-archive", {"alone", "opposed", "mentioned"}, set()),
        ("cascade", set(), {"alone", "backed", "opposed", "mentioned", "derived", "again"}),
    ],
    ids=["keep", "orphan-archive", "cascade"],
)
async def test_a_deleted_source_takes_along_what_the_policy_says(
    citer: Citer,
    library: Library,
    worker: WorkerContext,
    database_urls: DatabaseUrls,
    policy: str,
    archived: set[str],
    retracted: set[str],
) -> None:
    await assert_graph_is_equal(citer, worker)
    before = await library.statuses()
    answer = await citer.delete(f"{SOURCES}/{library.source}", policy=policy)
    assert answer.status_code == 200, answer.text
    done = answer.json()
    assert (done["deleted"], done["policy"], done["evidence_withdrawn"]) == (1, policy, 7)
    assert (library.named(done["archived"]), library.named(done["retracted"])) == (archived, retracted)
    assert done["position"] > 0
    expected = before | dict.fromkeys(archived, "archived") | dict.fromkeys(retracted, "retracted")
    assert await library.statuses() == expected
    await assert_graph_is_equal(citer, worker)
    graph = await dump(worker, citer.tenant.tenant_id)
    assert library.link not in graph.links
    assert {graph.memories[ident].status for ident in done["archived"]} <= {"archived"}

    assert (await citer.client.get(f"{SOURCES}/{library.source}", headers=citer.headers)).status_code == 404
    (left,) = await citer.evidence(library.ids["alone"])
    assert left["source"] == {"id": library.source, "kind": None, "title": None, "source_date": None}
    assert (left["passage_id"], left["quote"], left["locator"]) == (None, None, None)
    assert (left["withdrawn_because"], left["support"]) == ("source_deleted", "states")
    assert rows_of(database_urls, "SELECT DISTINCT source_id FROM passages") == [{"source_id": UUID(library.other)}]
    assert rows_of(database_urls, "SELECT count(*) AS n FROM passage_embeddings") == [{"n": 1}]
    backed = await citer.evidence(library.ids["backed"])
    assert [one["quote"] for one in backed if one["withdrawn_at"] is None] == ["says the plan"]

    admin = citer.tenant.headers("admin")
    entries = (await citer.client.get("/v1/audit", headers=admin)).json()["items"]
    (entry,) = [one for one in entries if one["action"] == "source.delete"]
    counts = {"policy": policy, "evidence": 7, "memories": len(archived | retracted)}
    assert {name: entry["detail"][name] for name in counts} == counts


@pytest.mark.parametrize(("policy", "kind"), [("orphan-archive", "archive"), ("cascade", "retract")])
async def test_what_it_did_to_a_memory_is_told_and_can_be_undone(
    citer: Citer, library: Library, worker: WorkerContext, database_urls: DatabaseUrls, policy: str, kind: str
) -> None:
    before = canonical(database_urls)["memories"]
    done = (await citer.delete(f"{SOURCES}/{library.source}", policy=policy)).json()
    actor = Actor(citer.client, citer.tenant)
    for ident in (*done["archived"], *done["retracted"]):
        entry = (await actor.history(ident))[0]
        assert (entry["kind"], entry["detail"]) == (kind, {"source_deleted": library.source})
        undone = await actor.undo(ident, entry["id"])
        assert undone.status_code == 200, undone.text
    assert canonical(database_urls)["memories"] == before
    await assert_graph_is_equal(citer, worker)


async def test_what_the_caller_may_not_see_goes_too_and_is_not_told(citer: Citer, database_urls: DatabaseUrls) -> None:
    ann, bob = citer.acting("ann"), citer.acting("bob")
    source = await bob.source("We ship.")
    shared = await bob.memory("Shared.", cites(source))
    hidden = await ann.memory("Hidden.", cites(source), visibility="private")
    beyond = await bob.memory("Derived from what is hidden.", label="Insight", visibility="tenant")
    await ann.tie("EXTRACTED_FROM", beyond, hidden)
    listed = [one["id"] for one in (await bob.get(f"{SOURCES}/{source}/records"))["items"]]
    assert listed == [shared]
    answer = await bob.delete(f"{SOURCES}/{source}", policy="cascade")
    done = answer.json()
    assert (done["evidence_withdrawn"], set(done["retracted"])) == (1, {shared, beyond})
    assert hidden not in answer.text
    statuses = {str(row["id"]): row["status"] for row in rows_of(database_urls, "SELECT id, status FROM memories")}
    assert statuses == dict.fromkeys((shared, hidden, beyond), "retracted")
    living = rows_of(database_urls, "SELECT 1 FROM evidence WHERE withdrawn_at IS NULL")
    assert living == []


async def test_who_may_not_read_the_source_is_not_told_of_it(citer: Citer) -> None:
    ann, bob = citer.acting("ann"), citer.acting("bob")
    source = await ann.source("We ship.", visibility="private")
    memory = await ann.memory("M.", cites(source), visibility="tenant", widen=True)
    assert (await ann.delete(f"{SOURCES}/{source}", policy="cascade")).json()["retracted"] == [memory]
    told = [(await user.get(f"{MEMORIES}/{memory}/history"))["items"][0]["detail"] for user in (ann, bob)]
    assert told == [{"source_deleted": source}, {}]
    assert len(await ann.evidence(memory)) == 1
    assert await bob.evidence(memory) == []


async def test_a_new_source_of_the_same_id_has_nothing_to_do_with_it(citer: Citer) -> None:
    source = await citer.source("We ship.")
    memory = await citer.memory("M.", cites(source, quote="ship"))
    (evidence,) = await citer.evidence(memory)
    await citer.delete(f"{MEMORIES}/{memory}/evidence/{evidence['id']}")
    other = await citer.memory("N.", cites(source, quote="ship"))
    await citer.delete(f"{SOURCES}/{source}")
    assert await citer.source("Other.", id=source, title="Other") == source
    for ident, because in ((memory, "withdrawn"), (other, "source_deleted")):
        (found,) = await citer.evidence(ident)
        assert (found["withdrawn_because"], found["quote"]) == (because, None)
    assert (await citer.evidence(other))[0]["source"]["title"] is None
    assert (await citer.get(f"{SOURCES}/{source}/records"))["items"] == []


async def test_the_version_is_held_against(citer: Citer) -> None:
    source = await citer.source()
    await citer.patch(f"{SOURCES}/{source}", {"title": "New"})
    headers = {**citer.headers, "If-Match": '"1"'}
    assert (await citer.client.delete(f"{SOURCES}/{source}", headers=headers)).status_code == 412
    headers["If-Match"] = '"2"'
    assert (await citer.client.delete(f"{SOURCES}/{source}", headers=headers)).status_code == 200
