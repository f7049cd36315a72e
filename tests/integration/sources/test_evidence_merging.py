"""Evidence goes where a claim goes: into the memory that a draft merges into, or that absorbs another; and back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fixtures.acting import rows_of
from tests.fixtures.citing import MEMORIES, SOURCES, Citer, Json, cites
from tests.fixtures.postgres import DatabaseUrls

pytestmark = pytest.mark.anyio

GATED = {"dedup": "gate", "label": "Preference"}


async def undo(citer: Citer, memory: str, act: str) -> None:
    answer = await citer.post(f"{MEMORIES}/{memory}/acts/{act}/undo", {})
    assert answer.status_code == 200, answer.text


async def quotes(citer: Citer, memory: str) -> list[tuple[str, Any]]:
    return sorted((one["support"], one["quote"]) for one in await citer.evidence(memory))


async def test_a_draft_that_merges_leaves_its_evidence_and_takes_it_back(citer: Citer) -> None:
    source = await citer.source("Mara likes silence.", "She said so.")
    first = await citer.memory("Mara likes silence.", cites(source, quote="silence"), **GATED)
    given = (cites(source, quote="silence"), cites(source, "supports", quote="said so"))
    merged = await citer.remember("mara likes SILENCE", *given, **GATED)
    assert (merged["outcome"], merged["memory"]["id"]) == ("merged", first)
    assert await quotes(citer, first) == [("states", "silence"), ("supports", "said so")]
    told = await citer.get(f"{MEMORIES}/{first}/history")
    assert "said so" not in str(told)
    assert source not in str(told)
    await undo(citer, first, merged["act_id"])
    assert await quotes(citer, first) == [("states", "silence")]
    listed = (await citer.get(MEMORIES))["items"]
    (other,) = [one["id"] for one in listed if one["id"] != first]
    assert await quotes(citer, other) == [("states", "silence"), ("supports", "said so")]


async def test_two_merges_of_the_same_evidence_are_undone_one_by_one(citer: Citer) -> None:
    source = await citer.source("Mara likes silence.")
    given = cites(source, quote="silence")
    first = await citer.memory("Mara likes silence.", **GATED)
    one = await citer.remember("mara likes SILENCE", given, **GATED)
    two = await citer.remember("MARA likes silence", given, **GATED)
    assert {one["outcome"], two["outcome"]} == {"merged"}
    await undo(citer, first, one["act_id"])
    assert await quotes(citer, first) == [("states", "silence")]  # the second still says so
    await undo(citer, first, two["act_id"])
    listed = [found["id"] for found in (await citer.get(MEMORIES))["items"]]
    assert len(listed) == 3
    assert {ident: len(await citer.evidence(ident)) for ident in listed} == {
        ident: 0 if ident == first else 1 for ident in listed
    }


async def test_drafts_of_one_batch_merge_with_their_evidence(citer: Citer) -> None:
    source = await citer.source("Mara likes silence.", "She said so.")
    items = [
        {"text": "Mara likes silence.", "evidence": [cites(source, quote="silence")], **GATED},
        {"text": "mara likes SILENCE", "evidence": [cites(source, quote="said so")], **GATED},
    ]
    results = (await citer.post(f"{MEMORIES}/batch", {"items": items})).json()["results"]
    assert [one["outcome"] for one in results] == ["created", "merged"]
    assert await quotes(citer, results[0]["memory_id"]) == [("states", "said so"), ("states", "silence")]


async def test_what_has_other_readers_does_not_merge(citer: Citer) -> None:
    ann = citer.acting("ann")
    open_to_all = await ann.memory("Mara likes silence.", **GATED)
    private = await ann.source("Mara likes silence.", visibility="private")
    stored = await ann.remember("Mara likes silence.", cites(private), **GATED)
    assert (stored["outcome"], stored["memory"]["visibility"]) == ("created", "private")
    assert stored["memory"]["id"] != open_to_all
    again = await ann.remember("Mara likes silence.", cites(private, "supports"), **GATED)
    assert (again["outcome"], again["memory"]["id"]) == ("merged", stored["memory"]["id"])
    asked = {"text": "Mara likes silence.", "label": "Preference", "evidence": [cites(private)]}
    checked = (await ann.post(f"{MEMORIES}/check", asked)).json()
    assert [one["id"] for one in checked["candidates"]] == [stored["memory"]["id"]]


async def test_a_widened_draft_that_merges_is_audited(citer: Citer) -> None:
    ann = citer.acting("ann")
    first = await ann.memory("Mara likes silence.", **GATED)
    private = await ann.source("Mara likes silence.", visibility="private")
    given = {"visibility": "tenant", "widen": True, **GATED}
    merged = await ann.remember("Mara likes silence.", cites(private), **given)
    assert merged["memory"]["id"] == first
    headers = citer.tenant.headers("admin")
    items = (await citer.client.get("/v1/audit", headers=headers)).json()["items"]
    found = [(one["target_id"], one["detail"]) for one in items if one["action"] == "memory.widen"]
    assert found == [(first, {"sources": [private]})]
    assert await citer.acting("bob").evidence(first) == []
    await undo(ann, first, merged["act_id"])
    assert await ann.evidence(first) == []


async def test_evidence_of_a_merge_that_lost_its_source_is_parted_withdrawn(citer: Citer) -> None:
    source = await citer.source("Mara likes silence.")
    first = await citer.memory("Mara likes silence.", **GATED)
    merged = await citer.remember("mara likes SILENCE", cites(source), **GATED)
    await citer.delete(f"{SOURCES}/{source}")
    await undo(citer, first, merged["act_id"])
    assert await citer.evidence(first) == []
    (other,) = [one["id"] for one in (await citer.get(MEMORIES))["items"] if one["id"] != first]
    assert [one["withdrawn_because"] for one in await citer.evidence(other)] == ["source_deleted"]


async def test_who_absorbs_a_memory_gets_copies_of_its_evidence(citer: Citer, database_urls: DatabaseUrls) -> None:
    weight: Json = {"label": "Attribute", "subject": "mara", "property": "weight", "dedup": "gate"}
    ann = citer.acting("ann")
    source = await citer.source("178 lbs, then 182.", "Both at the doctor's.")
    private = await ann.source("182.", visibility="private")
    old = await citer.memory("Mara weighs 178 lbs.", cites(source, quote="at the doctor's"), **weight)
    new = await citer.memory(
        "Mara weighs 182 lbs.", cites(source, quote="182"), cites(source, quote="at the doctor's"), **weight
    )
    given = {**cites(private, quote="182"), "widen": True}
    assert (await ann.post(f"{MEMORIES}/{new}/evidence", given)).status_code == 201
    (gone,) = [one for one in await citer.evidence(new) if one["quote"] == "182"]
    (review,) = (await citer.get("/v1/reviews", status="open"))["items"]
    before = rows_of(database_urls, "SELECT * FROM evidence ORDER BY id")
    reviewer = citer.tenant.headers("reviewer")
    path = f"/v1/reviews/{review['id']}/decide"
    decided = await citer.client.post(path, json={"decision": "merge"}, headers=reviewer)
    assert decided.status_code == 200, decided.text
    assert await quotes(citer, old) == [("states", "182"), ("states", "at the doctor's")]
    assert len(await ann.evidence(old)) == 3
    (copy,) = [one for one in await citer.evidence(old) if one["quote"] == "182"]
    same = ("recorded", "at", "confidence", "passage_id")
    assert {name: copy[name] for name in same} == {name: gone[name] for name in same}
    assert len(await ann.evidence(new)) == 3
    headers = citer.tenant.headers("admin")
    items = (await citer.client.get("/v1/audit", headers=headers)).json()["items"]
    widened = [(one["target_id"], one["detail"]) for one in items if one["action"] == "memory.widen"]
    assert (old, {"sources": [private]}) in widened
    await undo(citer, new, decided.json()["act_id"])
    assert rows_of(database_urls, "SELECT * FROM evidence ORDER BY id") == before
