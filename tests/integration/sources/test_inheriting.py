"""Memories inherit their readers from the sources that they cite, and get more of them on purpose only."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fixtures.citing import MEMORIES, SOURCES, Citer, Json, cites, pointers

pytestmark = pytest.mark.anyio

NOBODY: Json = {"users": [], "groups": []}


async def restricted(citer: Citer, users: list[str], groups: list[str]) -> str:
    return await citer.source("We ship.", visibility="restricted", readers={"users": users, "groups": groups})


async def readers_of(citer: Citer, memory: str) -> tuple[str, Any]:
    found = await citer.get(f"{MEMORIES}/{memory}")
    return found["visibility"], found["readers"]


async def widenings(citer: Citer) -> list[tuple[str, list[str]]]:
    """What is audited about it: memory and sources, the oldest first."""
    headers = citer.tenant.headers("admin")
    items = (await citer.client.get("/v1/audit", params={"limit": 200}, headers=headers)).json()["items"]
    found = [one for one in items if one["action"] == "memory.widen"]
    return [(one["target_id"], one["detail"]["sources"]) for one in found[::-1]]


async def test_without_evidence_all_may_read_it(citer: Citer) -> None:
    assert await readers_of(citer, await citer.memory("M.")) == ("tenant", NOBODY)


async def test_it_gets_the_readers_of_its_source(citer: Citer) -> None:
    ann = citer.acting("ann", "crew")
    open_to_all = await ann.source("We ship.")
    mine = await ann.source("We ship.", visibility="private")
    ours = await restricted(ann, ["ann", "bob"], ["crew"])
    both = {"users": ["bob"], "groups": ["crew"]}
    for sources, expected in (
        ([open_to_all], ("tenant", NOBODY)),
        ([mine], ("private", NOBODY)),
        ([ours], ("restricted", both)),
        ([ours, open_to_all], ("restricted", both)),
        ([ours, mine, open_to_all], ("private", NOBODY)),
    ):
        memory = await ann.memory("M.", *(cites(source) for source in sources))
        assert await readers_of(ann, memory) == expected
    assert await widenings(citer) == []


async def test_several_sources_leave_whom_they_have_in_common(citer: Citer) -> None:
    ann = citer.acting("ann", "crew")
    one = await restricted(ann, ["ann", "bob", "cat"], ["crew", "staff"])
    other = await restricted(ann, ["ann", "cat", "dan"], ["staff", "guests"])
    memory = await ann.memory("M.", cites(one), cites(other))
    assert await readers_of(ann, memory) == ("restricted", {"users": ["cat"], "groups": ["staff"]})
    assert (await citer.acting("cat").get(f"{MEMORIES}/{memory}"))["id"] == memory
    bob = citer.acting("bob")
    assert (await bob.client.get(f"{MEMORIES}/{memory}", headers=bob.headers)).status_code == 404


async def test_a_writer_whom_the_meet_leaves_out_keeps_it_private(citer: Citer) -> None:
    dan = citer.acting("dan")
    by_name = await dan.source("We ship.", visibility="restricted", readers={"users": ["ann", "eve"]})
    by_group = await citer.acting("eve", "crew").source(visibility="restricted", readers={"groups": ["crew"]})
    ann = citer.acting("ann", "crew")
    memory = await ann.memory("M.", cites(by_name), cites(by_group))
    assert await readers_of(ann, memory) == ("private", NOBODY)


async def test_a_writer_without_a_user_has_no_private_memory(citer: Citer) -> None:
    tenant = citer.tenant
    token = tenant.add_token("writer", groups=["crew", "staff"])
    crew = await citer.acting("eve", "crew").source(visibility="restricted", readers={"groups": ["crew"]})
    staff = await citer.acting("eve", "staff").source(visibility="restricted", readers={"groups": ["staff"]})
    headers = {"Authorization": f"Bearer {token}"}
    base = {"text": "M.", "label": "Attribute", "dedup": "off"}

    async def store(*sources: str, **fields: Any) -> Any:
        body = {**base, "evidence": [cites(source) for source in sources], **fields}
        return await citer.client.post(MEMORIES, json=body, headers=headers)

    one = await store(crew)
    assert one.status_code == 201, one.text
    assert one.json()["memory"]["readers"] == {"users": ["eve"], "groups": ["crew"]}
    assert [found for found, _ in pointers(await store(crew, staff))] == ["/visibility"]
    wide = await store(crew, staff, visibility="restricted", readers={"groups": ["crew"]}, widen=True)
    assert wide.status_code == 201, wide.text
    assert await widenings(citer) == [(wide.json()["memory"]["id"], [staff])]


@pytest.mark.parametrize(
    "named",
    [
        {"visibility": "tenant"},
        {"visibility": "restricted", "readers": {"users": ["ann", "cat"]}},
        {"visibility": "restricted", "readers": {"groups": ["guests"], "users": []}},
    ],
    ids=["all", "a user", "a group"],
)
async def test_a_named_visibility_that_is_wider_needs_a_word(citer: Citer, named: Json) -> None:
    ann = citer.acting("ann", "crew")
    source = await restricted(ann, ["bob"], ["crew"])
    open_to_all = await ann.source("We ship.")
    given = [cites(source), cites(open_to_all)]
    refused = await ann.store("M.", *given, **named)
    assert [pointer for pointer, _ in pointers(refused)] == ["/visibility"]
    checked = await ann.post(f"{MEMORIES}/check", {"text": "M.", "label": "Attribute", "evidence": given, **named})
    assert [pointer for pointer, _ in pointers(checked)] == ["/visibility"]
    stored = await ann.memory("M.", *given, **named, widen=True)
    assert (await readers_of(ann, stored))[0] == named["visibility"]
    assert await widenings(citer) == [(stored, [source])]


async def test_a_named_visibility_that_is_as_narrow_needs_none(citer: Citer) -> None:
    ann = citer.acting("ann", "crew")
    source = await restricted(ann, ["bob", "cat"], ["crew"])
    for named in (
        {"visibility": "private"},
        {"visibility": "restricted", "readers": {"users": ["cat"]}},
        {"visibility": "restricted", "readers": {"users": ["bob", "cat"], "groups": ["crew"]}},
    ):
        await ann.memory("M.", cites(source), **named)
    assert await widenings(citer) == []


async def test_items_of_a_batch_are_refused_alone(citer: Citer) -> None:
    ann = citer.acting("ann")
    source = await ann.source("We ship.", visibility="private")
    base = {"label": "Attribute", "dedup": "off", "evidence": [cites(source)]}
    items = [{**base, "text": "A.", "visibility": "tenant"}, {**base, "text": "B."}]
    results = (await ann.post(f"{MEMORIES}/batch", {"items": items})).json()["results"]
    assert [one["status"] for one in results] == [422, 201]
    assert results[0]["error"]["errors"][0]["pointer"] == "/visibility"


async def test_a_change_beyond_the_sources_needs_a_word(citer: Citer) -> None:
    ann = citer.acting("ann")
    source = await restricted(ann, ["bob"], [])
    open_to_all = await ann.source("We ship.")
    memory = await ann.memory("M.", cites(source), cites(open_to_all))
    path = f"{MEMORIES}/{memory}"
    more = {"visibility": "restricted", "readers": {"users": ["bob", "cat"], "groups": []}}
    for wide in ({"visibility": "tenant"}, more):
        assert [pointer for pointer, _ in pointers(await ann.patch(path, wide))] == ["/visibility"]
    assert (await ann.patch(path, {"title": "T", "widen": False})).status_code == 200
    assert (await ann.patch(path, {"visibility": "private"})).status_code == 200  # narrower
    assert (await ann.patch(path, {"visibility": "restricted", "readers": {"users": ["bob"]}})).status_code == 200
    assert await widenings(citer) == []
    answer = await ann.patch(path, {"visibility": "tenant", "widen": True})
    assert answer.status_code == 200, answer.text
    assert "widen" not in str(await ann.get(f"{path}/history"))
    assert await widenings(citer) == [(memory, [source])]
    assert (await ann.patch(path, more)).status_code == 200  # fewer than before, if still more than may read the source


async def test_only_who_may_read_the_source_gives_more_readers(citer: Citer) -> None:
    ann, cat = citer.acting("ann"), citer.acting("cat")
    source = await ann.source("We ship.", visibility="private")
    readers = {"visibility": "restricted", "readers": {"users": ["cat"]}}
    memory = await ann.memory("M.", cites(source), **readers, widen=True)
    path = f"{MEMORIES}/{memory}"
    assert await cat.evidence(memory) == []
    reviewer = citer.tenant.headers("reviewer", user="cat")
    refused = await citer.client.patch(path, json={"visibility": "tenant", "widen": True}, headers=reviewer)
    assert (refused.status_code, source in refused.text) == (403, False)
    assert "taken from" in refused.json()["detail"]
    assert (await ann.patch(path, {"visibility": "tenant", "widen": True})).status_code == 200


async def test_withdrawn_evidence_binds_nobody(citer: Citer) -> None:
    ann = citer.acting("ann")
    source = await ann.source("We ship.", visibility="private")
    memory = await ann.memory("M.", cites(source))
    (evidence,) = await ann.evidence(memory)
    await ann.delete(f"{MEMORIES}/{memory}/evidence/{evidence['id']}")
    assert (await ann.patch(f"{MEMORIES}/{memory}", {"visibility": "tenant"})).status_code == 200


async def test_adding_evidence_of_a_narrower_source_needs_a_word(citer: Citer) -> None:
    ann, bob = citer.acting("ann"), citer.acting("bob")
    source = await ann.source("We ship.", visibility="private")
    memory = await ann.memory("M.")
    path = f"{MEMORIES}/{memory}/evidence"
    refused = await ann.post(path, cites(source))
    assert refused.status_code == 409
    assert source not in refused.text
    assert await ann.evidence(memory) == []
    added = await ann.post(path, {**cites(source), "widen": True})
    assert added.status_code == 201, added.text
    assert (await ann.post(path, cites(source))).json() == added.json()  # it is there by now
    assert await widenings(citer) == [(memory, [source])]
    assert await bob.evidence(memory) == []
    private = await ann.memory("N.", visibility="private")
    assert (await ann.post(f"{MEMORIES}/{private}/evidence", cites(source))).status_code == 201


async def test_memories_keep_their_readers_when_the_source_gets_others(citer: Citer) -> None:
    ann = citer.acting("ann")
    source = await ann.source("We ship.", visibility="private")
    memory = await ann.memory("M.", cites(source))
    assert (await ann.patch(f"{SOURCES}/{source}", {"visibility": "tenant"})).status_code == 200
    assert await readers_of(ann, memory) == ("private", NOBODY)
    assert (await ann.patch(f"{MEMORIES}/{memory}", {"visibility": "tenant"})).status_code == 200
