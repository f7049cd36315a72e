"""`dry_run` of merges and splits: what they would do, as the caller sees it, and nothing is changed."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.fixtures.entities import declare, store_memory
from tests.fixtures.merging import edge, everything, link, make_derived, merge, pair, split
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant
from tests.fixtures.worker import drain

from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

NONE: dict[str, Any] = {"count": 0, "ids": []}


def told(*ids: str) -> dict[str, Any]:
    return {"count": len(ids), "ids": sorted(ids)}


def planned(relations: dict[str, Any]) -> dict[str, Any]:
    return {fate: {**found, "ids": sorted(found["ids"])} for fate, found in relations.items()}


async def test_a_merge_is_told_as_the_caller_sees_it_and_then_done_so(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    headers, cy = tenant.headers(), tenant.headers(user="cy")
    source = (await declare(client, headers, name="Annie Lee", entity_type="client", summary="Prints."))["id"]
    into = (await declare(client, headers, aliases=["A. Lee"]))["id"]
    acme = (await declare(client, headers, name="Acme", aliases=["annie-lee"]))["id"]
    memories = [await store_memory(client, headers, text="Annie Lee met Ann Lee.") for _ in range(2)]
    secret = await store_memory(client, cy, text="Ann Lee hides.", visibility="private")
    moved = await edge(client, headers, {"memory": memories[0]}, {"entity": source})
    same = [await edge(client, headers, {"entity": one}, {"memory": memories[1]}) for one in (source, into)]
    out, loop = await link(client, headers, source, acme), await link(client, headers, into, source)
    hidden = [
        await link(client, cy, source, secret, layer="memory"),
        await link(client, cy, into, secret, layer="memory"),
        await edge(client, cy, {"memory": secret}, {"entity": source}),
    ]
    await drain(worker)
    before = everything(database_urls)
    for who, seen in ((headers, 0), (cy, 1)):
        answer = await merge(client, {**who, "Idempotency-Key": "k-1"}, source, into, dry_run=True)
        assert (answer.status_code, "etag" in answer.headers) == (200, False), answer.text
        plan = answer.json()
        assert plan["dry_run"] is True
        assert plan["entity"] == {
            "id": into,
            "name": "Ann Lee",
            "entity_type": "person",
            "aliases": ["A. Lee", "Annie Lee"],
        }
        assert (plan["goes"]["id"], plan["goes"]["name"], plan["memories"]) == (source, "Annie Lee", 2 + seen)
        edges, links = planned(plan["edges"]), planned(plan["links"])
        assert edges == {
            "moved": told(moved, *hidden[2:][:seen]),
            "collapsed": told(same[0]),
            "looped": NONE,
        }
        assert links == {"moved": told(out), "collapsed": told(*hidden[:seen]), "looped": told(loop)}
        assert [doubt["code"] for doubt in plan["against"]] == ["types_differ", "summary_goes", "name_shared"]
        assert seen or not any(ident in answer.text for ident in (secret, *hidden))
        assert everything(database_urls) == before
    done = await merge(client, headers, source, into)
    assert done.json()["entity"]["aliases"] == ["A. Lee", "Annie Lee"]


async def test_a_split_is_told_and_then_done_so(
    client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext, database_urls: DatabaseUrls
) -> None:
    headers, cy = tenant.headers(), tenant.headers(user="cy")
    old = (await declare(client, headers, aliases=["Annie Lee", "A. Lee"]))["id"]
    await store_memory(client, headers, text="Annie Lee moved.")
    await store_memory(client, headers, text="Ann Lee left.")
    await store_memory(client, cy, text="Annie Lee hides.", visibility="private")
    await drain(worker)
    before = everything(database_urls)
    ident = str(uuid4())
    body = {"name": "Ann Lee", "id": ident, "dry_run": True}
    answer = await split(client, headers, old, "annie-lee", **body)
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    (doubt,) = plan.pop("against")
    assert doubt["code"] == "name_shared"
    assert plan == {
        "entity": {"id": ident, "name": "Ann Lee", "entity_type": "person", "aliases": ["Annie Lee"]},
        "remaining": {"id": old, "name": "Ann Lee", "entity_type": "person", "aliases": ["A. Lee"]},
        "memories": 2,
        "moving": 1,
        "dry_run": True,
    }
    assert (await split(client, headers, old, "annie-lee", dry_run=True)).json()["entity"]["id"] is None
    assert everything(database_urls) == before
    done = (await split(client, headers, old, "annie-lee", **{**body, "dry_run": False})).json()
    assert (done["entity"]["aliases"], done["remaining"]["aliases"]) == (["Annie Lee"], ["A. Lee"])
    after = everything(database_urls)
    again = await split(client, headers, old, "annie-lee", **body)  # what was done already would be found
    assert (again.status_code, again.json()["entity"]["aliases"]) == (200, ["Annie Lee"])
    assert everything(database_urls) == after


async def test_a_dry_run_is_refused_as_the_act_would_be(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers, cy = tenant.headers(), tenant.headers(user="cy")
    source, into = await pair(client, headers)
    hidden = (await declare(client, cy, name="Diary", visibility="private"))["id"]
    restricted = {"visibility": "restricted", "readers": {"users": ["ann"]}}
    narrow = (await declare(client, tenant.headers(user="ann"), name="Anna", **restricted))["id"]
    room = (await declare(client, headers, name="Room 101"))["id"]
    derived = make_derived(tenant, await store_memory(client, headers))
    before = everything(database_urls)
    ann = tenant.headers(user="ann")
    for who, one, two, more in (
        (headers, source, source, {}),
        (headers, hidden, into, {}),
        (headers, str(uuid4()), into, {}),
        (headers, derived, into, {}),
        (ann, narrow, into, {}),
        (headers, room, into, {}),
        (headers, source, into, {"colour": "red"}),
        ({**headers, "If-Match": '"9"'}, source, into, {}),
        (tenant.headers("reader"), source, into, {}),
    ):
        answers = [await merge(client, who, one, two, **more, dry_run=dry) for dry in (True, False)]
        assert len({(answer.status_code, answer.json()["detail"]) for answer in answers}) == 1, one
        assert answers[0].status_code >= 400
    for who, entity, alias, more in (
        (headers, into, "nobody", {}),
        (headers, hidden, "annie", {}),
        (headers, derived, "x", {}),
        (headers, into, "annie", {"id": source}),
        (headers, into, "annie", {"id": hidden}),
        ({**headers, "If-Match": '"9"'}, into, "annie", {}),
        (tenant.headers("reader"), into, "annie", {}),
    ):
        answers = [await split(client, who, entity, alias, **more, dry_run=dry) for dry in (True, False)]
        assert len({(answer.status_code, answer.json()["detail"]) for answer in answers}) == 1, entity
        assert answers[0].status_code >= 400
    assert everything(database_urls) == before
