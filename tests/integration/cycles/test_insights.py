"""What cycles propose as Insights, on real rows: from which bounds on, for whom, only once, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from itertools import combinations
from typing import Any
from uuid import UUID

import pytest
from tests.fixtures.worker import drain
from tests.integration.cycles.conftest import DAY, NOW, Cycling
from tests.integration.erasure.searching import in_graph, places_with

from memory_os.cycles import forming, gathering
from memory_os.cycles.candidates import CandidateFilter, InsightService, get_candidate, list_candidates
from memory_os.cycles.insight_model import Acceptance, AcceptedInsight, InsightCandidate, Rejection
from memory_os.domain.cycles.insights import HOLDING, RECURS
from memory_os.domain.principal import Principal
from memory_os.errors import ConflictError, InvalidInputError, NotFoundError
from memory_os.storage.database import Scope
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

STRONG: dict[str, Any] = {"co_reference_count": 10, "confidence": 0.81, "used_at": NOW - 20 * DAY}
THIS_WEEK: dict[str, Any] = {"co_reference_count": 1, "confidence": 0.5, "used_at": NOW - 7 * DAY}
CANARY = "zcanaryq"


async def memories(cycling: Cycling, count: int, label: str = "Reference", user: str | None = None) -> list[str]:
    fields: dict[str, Any] = {} if user is None else {"user_id": user, "visibility": "private"}
    return [
        await cycling.memory(f"{label} {number} of {user or 'all'} tells of turbines.", label, **fields)
        for number in range(count)
    ]


async def tie(cycling: Cycling, ids: Sequence[str], values: dict[str, Any], user: str | None = None) -> list[str]:
    """All of them to all."""
    made = []
    for one, other in combinations(ids, 2):
        fields = {} if user is None else {"user_id": user}
        answer = await cycling.post(
            "/v1/edges", type="SUPPORTS", **{"from": {"memory": one}, "to": {"memory": other}}, **fields
        )
        made.append(str(answer["edge"]["id"]))
        cycling.put("edges", made[-1], **values)
    return made


def candidates(cycling: Cycling) -> list[dict[str, Any]]:
    return cycling.rows(
        "SELECT c.*, (SELECT array_agg(i.member_id::text ORDER BY i.member_id) FROM insight_members AS i "
        "WHERE i.candidate_id = c.id) AS members FROM insight_candidates AS c ORDER BY c.visibility DESC, c.id"
    )


def reviewer(cycling: Cycling, user: str | None = None) -> Principal:
    return Principal(cycling.tenant.tenant_id, "reviewer", user_id=user)


async def accept(cycling: Cycling, candidate_id: UUID, *, user: str | None = None, **words: str) -> AcceptedInsight:
    """As the API does it: read, embed, and one unit of work."""
    principal, service = reviewer(cycling, user), InsightService(cycling.services.memories)
    run, scope = cycling.services.database.run, Scope.of(principal)
    candidate = await run(scope, lambda tx: get_candidate(tx, candidate_id))
    acceptance = Acceptance(**words)
    prepared = await service.prepare(candidate, acceptance)
    return await run(scope, lambda tx: service.accept(tx, principal, candidate_id, acceptance, prepared, None))


async def reject(cycling: Cycling, candidate_id: UUID, reason: str | None = None) -> InsightCandidate:
    principal, service = reviewer(cycling), InsightService(cycling.services.memories)
    return await cycling.services.database.run(
        Scope.of(principal), lambda tx: service.reject(tx, principal, candidate_id, Rejection(reason), None)
    )


async def delete(cycling: Cycling, ident: str) -> None:
    answer = await cycling.client.delete(f"/v1/memories/{ident}", headers=cycling.tenant.headers("admin"))
    assert answer.is_success, answer.text


async def patch(cycling: Cycling, ident: str, **fields: Any) -> None:
    answer = await cycling.client.patch(
        f"/v1/memories/{ident}", json=fields, headers=cycling.tenant.headers("admin", user="ann")
    )
    assert answer.is_success, answer.text


async def schema(cycling: Cycling) -> tuple[list[str], dict[str, Any]]:
    """Five memories that are used together, and the candidate that they are proposed as."""
    ids = await memories(cycling, 5)
    await tie(cycling, ids, STRONG)
    await cycling.run("monthly")
    (candidate,) = candidates(cycling)
    return ids, candidate


@pytest.mark.parametrize(
    ("members", "references", "confidence", "found"),
    [(4, 10, 0.81, 0), (5, 10, 0.81, 1), (5, 9, 0.81, 0), (5, 10, 0.8, 0)],
)
async def test_a_schema_is_proposed_from_its_bounds_on(
    cycling: Cycling, members: int, references: int, confidence: float, found: int
) -> None:
    ids = await memories(cycling, members)
    await tie(cycling, ids, {**STRONG, "co_reference_count": references, "confidence": confidence})
    run = await cycling.run("monthly")
    made = candidates(cycling)
    assert len(made) == found
    for one in made:
        assert (one["rule"], one["summary"], one["status"], one["visibility"]) == (
            "form_schemas",
            "extractive",
            "open",
            "tenant",
        )
        assert one["members"] == sorted(ids)
        assert one["run_id"] == run
        assert "turbines." in one["text"]


@pytest.mark.parametrize(
    ("labels", "used", "references", "found"),
    [
        (("Reference", "Reference", "Goal"), NOW - 7 * DAY, 1, 1),
        (("Reference", "Reference", "Resource"), NOW - 7 * DAY, 1, 0),
        (("Reference", "Goal"), NOW - 7 * DAY, 1, 0),
        (("Reference", "Reference", "Goal"), NOW - 8 * DAY, 1, 0),
        (("Reference", "Reference", "Goal"), NOW - DAY, 0, 0),
    ],
)
async def test_a_pattern_is_proposed_across_layers_of_what_grew_this_week(
    cycling: Cycling, labels: Sequence[str], used: Any, references: int, found: int
) -> None:
    ids = [await cycling.memory(f"{label} {number} tells.", label) for number, label in enumerate(labels)]
    await tie(cycling, ids, {"used_at": used, "co_reference_count": references})
    await cycling.run("weekly")
    assert [(one["rule"], one["members"]) for one in candidates(cycling)] == [("find_patterns", sorted(ids))] * found


async def test_a_pattern_may_span_types_of_entities(cycling: Cycling) -> None:
    ids = await memories(cycling, 2)
    await tie(cycling, ids, THIS_WEEK)
    entities = []
    for name, kind in (("Kettle", "system"), ("Ann Lee", "person")):
        made = await cycling.post("/v1/memory/entities", name=name, entity_type=kind)
        entities.append(str(made["entity"]["id"]))
    for memory in ids:
        for entity in entities:
            edge = await cycling.post(
                "/v1/edges", type="ABOUT", **{"from": {"memory": memory}, "to": {"entity": entity}}
            )
            cycling.put("edges", str(edge["edge"]["id"]), **THIS_WEEK)
    await cycling.run("weekly")
    (candidate,) = candidates(cycling)
    assert candidate["members"] == sorted([*ids, *entities])
    accepted = await accept(cycling, candidate["id"])
    about = cycling.rows(
        "SELECT target_entity_id::text AS id FROM edges WHERE source_memory_id = %s AND type = 'ABOUT'",
        accepted.memory.id,
    )
    assert sorted(row["id"] for row in about) == sorted(entities)


@pytest.mark.parametrize(("merges", "found"), [(RECURS - 2, 0), (RECURS - 1, 1)])
async def test_a_behavior_that_recurs_is_proposed(cycling: Cycling, merges: int, found: int) -> None:
    first = (await cycling.post("/v1/memories", text="Ann walks to work.", label="Behavior"))["memory"]["id"]
    for _ in range(merges):
        again = await cycling.post("/v1/memories", text="Ann walks to work.", label="Behavior")
        assert again["outcome"] == "merged"
    await cycling.run("monthly")
    assert [(one["rule"], one["members"], one["strength"]) for one in candidates(cycling)] == [
        ("evolve_behaviors", [first], RECURS)
    ] * found


async def test_accepting_a_behavior_lets_it_evolve(cycling: Cycling) -> None:
    for _ in range(RECURS):
        first = (await cycling.post("/v1/memories", text="Ann walks to work.", label="Behavior"))["memory"]["id"]
    await cycling.run("monthly")
    (candidate,) = candidates(cycling)
    insight = (await accept(cycling, candidate["id"])).memory
    assert insight.id != UUID(first)
    ties = cycling.rows("SELECT type, source_memory_id AS source, target_memory_id AS target FROM edges ORDER BY type")
    assert [tuple(row.values()) for row in ties] == [
        ("EVOLVED_INTO", UUID(first), insight.id),
        ("EXTRACTED_FROM", insight.id, UUID(first)),
    ]
    await cycling.run("monthly", NOW + 31 * DAY)
    assert len(candidates(cycling)) == 1
    await cycling.run("nightly", NOW + 32 * DAY)  # the two say the same: that does not make them one
    assert cycling.rows("SELECT DISTINCT status FROM memories") == [{"status": "active"}]
    again = await cycling.post("/v1/memories", text="Ann walks to work.", label="Behavior")
    assert (again["outcome"], again["memory"]["id"]) == ("merged", first)


async def test_readers_are_never_mixed(cycling: Cycling) -> None:
    """Five of all, five of Ann, five of Bo, all tied to each other: three candidates, each with its members' readers.

    What ties them is used more than what ties each five.
    """
    everybody = await memories(cycling, 5)
    anns = await memories(cycling, 5, user="ann")
    bos = await memories(cycling, 5, user="bo")
    await tie(cycling, everybody, STRONG)
    await tie(cycling, anns, STRONG, "ann")
    await tie(cycling, bos, STRONG, "bo")
    for own, user in ((anns, "ann"), (bos, "bo")):
        for one, other in zip(own, everybody, strict=True):
            made = await cycling.post(
                "/v1/edges", type="PART_OF", user_id=user, **{"from": {"memory": one}, "to": {"memory": other}}
            )
            cycling.put("edges", str(made["edge"]["id"]), **{**STRONG, "co_reference_count": 1_000})
    await cycling.run("monthly")
    made = {(one["visibility"], one["user_id"]): one for one in candidates(cycling)}
    assert {key: one["members"] for key, one in made.items()} == {
        ("tenant", None): sorted(everybody),
        ("private", "ann"): sorted(anns),
        ("private", "bo"): sorted(bos),
    }
    listed = {user: await seen(cycling, user) for user in (None, "ann", "bo")}
    assert listed == {
        None: {made["tenant", None]["id"]},
        "ann": {made["tenant", None]["id"], made["private", "ann"]["id"]},
        "bo": {made["tenant", None]["id"], made["private", "bo"]["id"]},
    }
    with pytest.raises(NotFoundError):
        await accept(cycling, made["private", "ann"]["id"], user="bo")
    insight = (await accept(cycling, made["private", "ann"]["id"], user="ann")).memory
    assert (insight.visibility, insight.user_id) == ("private", "ann")
    shared = (await accept(cycling, made["tenant", None]["id"], user="ann")).memory
    assert (shared.visibility, shared.user_id) == ("tenant", None)


async def seen(cycling: Cycling, user: str | None) -> set[UUID]:
    page = await cycling.services.database.run(
        Scope.of(reviewer(cycling, user)), lambda tx: list_candidates(tx, CandidateFilter(), None, 50)
    )
    assert all(one.members for one in page.items)
    return {one.id for one in page.items}


async def test_what_a_group_reads_is_proposed_to_the_group(cycling: Cycling) -> None:
    ids = []
    for number in range(5):
        answer = await cycling.client.post(
            "/v1/memories",
            json={
                "text": f"Shift note {number}.",
                "label": "Reference",
                "dedup": "off",
                "visibility": "restricted",
                "readers": {"groups": ["shift"]},
            },
            headers=cycling.tenant.headers("admin", user="ann", groups=["shift"]),
        )
        assert answer.is_success, answer.text
        ids.append(answer.json()["memory"]["id"])
    for one, other in combinations(ids, 2):
        answer = await cycling.client.post(
            "/v1/edges",
            json={"type": "SUPPORTS", "from": {"memory": one}, "to": {"memory": other}},
            headers=cycling.tenant.headers("admin", user="ann", groups=["shift"]),
        )
        cycling.put("edges", answer.json()["edge"]["id"], **STRONG)
    await cycling.run("monthly")
    (candidate,) = candidates(cycling)
    assert (candidate["visibility"], candidate["reader_users"], candidate["reader_groups"]) == (
        "restricted",
        ["ann"],
        ["shift"],
    )
    principal = Principal(cycling.tenant.tenant_id, "reviewer", user_id="bo", groups=("shift",))
    service, run = InsightService(cycling.services.memories), cycling.services.database.run
    got = await run(Scope.of(principal), lambda tx: get_candidate(tx, candidate["id"]))
    prepared = await service.prepare(got, Acceptance())
    made = await run(
        Scope.of(principal), lambda tx: service.accept(tx, principal, got.id, Acceptance(), prepared, None)
    )
    assert (made.memory.visibility, made.memory.user_id) == ("restricted", None)
    assert (made.memory.readers.users, made.memory.readers.groups) == (["ann"], ["shift"])


async def test_a_trial_predicts_exactly_and_stores_nothing(cycling: Cycling) -> None:
    ids = await memories(cycling, 5)
    await tie(cycling, ids, STRONG)
    for _ in range(RECURS):
        await cycling.post("/v1/memories", text="Ann walks to work.", label="Behavior")
    trial = await cycling.run("monthly", dry_run=True)
    assert candidates(cycling) == []
    run = await cycling.run("monthly")
    assert cycling.actions(run) == cycling.actions(trial)
    assert [action["rule"] for action in cycling.actions(run)] == ["form_schemas", "evolve_behaviors"]
    assert "turbines" not in str(cycling.actions(run))


async def test_two_months_propose_once(cycling: Cycling) -> None:
    ids, candidate = await schema(cycling)
    second = await cycling.run("monthly", NOW + 31 * DAY)
    assert [one["id"] for one in candidates(cycling)] == [candidate["id"]]
    assert [action["rule"] for action in cycling.actions(second)] == []
    more = await memories(cycling, 1, "Resource")
    for one in ids:
        edge = await cycling.edge(more[0], one)
        cycling.put("edges", edge, **STRONG)
    await cycling.run("monthly", NOW + 62 * DAY)
    assert len(candidates(cycling)) == 1  # five of six are the same


async def test_what_was_rejected_is_not_proposed_again(cycling: Cycling) -> None:
    _, candidate = await schema(cycling)
    rejected = await reject(cycling, candidate["id"], "means nothing")
    assert (rejected.status, rejected.reason, rejected.decided_by) == ("rejected", "means nothing", "reviewer")
    await cycling.run("monthly", NOW + 31 * DAY)
    assert [one["status"] for one in candidates(cycling)] == ["rejected"]
    with pytest.raises(ConflictError, match="rejected already"):
        await accept(cycling, candidate["id"])
    with pytest.raises(ConflictError, match="rejected already"):
        await reject(cycling, candidate["id"])


async def test_an_accepted_candidate_becomes_an_insight_with_its_members(
    cycling: Cycling, worker: WorkerContext
) -> None:
    ids, candidate = await schema(cycling)
    accepted = await accept(cycling, candidate["id"])
    insight = accepted.memory
    assert (insight.label, insight.origin, insight.title, insight.text) == (
        "Insight",
        "cycle",
        candidate["title"],
        candidate["text"],
    )
    assert insight.metadata == {"summary": "extractive"}
    assert (accepted.candidate.status, accepted.candidate.memory_id) == ("accepted", insight.id)
    edges = cycling.rows(
        "SELECT type, source_memory_id::text AS source, target_memory_id::text AS target FROM edges "
        "WHERE %s IN (source_memory_id, target_memory_id)",
        insight.id,
    )
    assert {tuple(edge.values()) for edge in edges} == {
        *(("EXTRACTED_FROM", str(insight.id), one) for one in ids),
        *(("PART_OF", one, str(insight.id)) for one in ids),
    }
    assert cycling.rows("SELECT 1 AS there FROM memory_embeddings WHERE memory_id = %s", insight.id)
    (told,) = cycling.rows("SELECT * FROM audit_log WHERE action = 'insight.accept'")
    assert (told["target_id"], told["detail"]) == (
        str(candidate["id"]),
        {"memory_id": str(insight.id), "edited": False},
    )
    await drain(worker)
    graph = await worker.backend.dump(cycling.tenant.tenant_id)
    assert str(insight.id) in repr(graph)
    with pytest.raises(ConflictError, match=str(insight.id)):
        await accept(cycling, candidate["id"])


async def test_a_reviewer_may_put_it_into_other_words(cycling: Cycling) -> None:
    _, candidate = await schema(cycling)
    with pytest.raises(InvalidInputError):
        await accept(cycling, candidate["id"], text="  ")
    insight = (await accept(cycling, candidate["id"], title="Turbines", text="Turbines matter to us.")).memory
    assert (insight.title, insight.text, insight.metadata) == (
        "Turbines",
        "Turbines matter to us.",
        {"summary": "edited"},
    )


async def test_words_of_a_model_are_marked_as_such(cycling: Cycling) -> None:
    _, candidate = await schema(cycling)
    cycling.put("insight_candidates", candidate["id"], text="All of it is of turbines.", summary="model")
    insight = (await accept(cycling, candidate["id"])).memory
    assert (insight.text, insight.metadata) == ("All of it is of turbines.", {"summary": "model"})


async def test_a_vector_of_other_words_is_not_taken(cycling: Cycling) -> None:
    """A candidate that got other words while its old ones were being embedded is embedded later, by a worker."""
    _, candidate = await schema(cycling)
    principal, service = reviewer(cycling), InsightService(cycling.services.memories)
    run, scope = cycling.services.database.run, Scope.of(principal)
    read = await run(scope, lambda tx: get_candidate(tx, candidate["id"]))
    prepared = await service.prepare(read, Acceptance())
    cycling.put("insight_candidates", candidate["id"], text="All of it is of turbines.", summary="model")
    made = await run(scope, lambda tx: service.accept(tx, principal, read.id, Acceptance(), prepared, None))
    assert cycling.rows("SELECT embedding_model AS model FROM memories WHERE id = %s", made.memory.id) == [
        {"model": None}
    ]


async def test_nothing_is_made_of_insights_that_cycles_made(cycling: Cycling) -> None:
    ids = await memories(cycling, 4)
    insight = await cycling.memory("An Insight of a cycle.", "Insight", origin="cycle")
    others = await memories(cycling, 1, "Insight")
    await tie(cycling, [*ids, insight], STRONG)
    await cycling.run("monthly")
    assert candidates(cycling) == []
    for one in ids:
        cycling.put("edges", await cycling.edge(others[0], one), **STRONG)
    await cycling.run("monthly", NOW + 31 * DAY)
    assert [one["members"] for one in candidates(cycling)] == [sorted([*ids, *others])]


async def test_undo_takes_back_what_nobody_decided(cycling: Cycling) -> None:
    ids = await memories(cycling, 5)
    more = await memories(cycling, 5, "Resource")
    last = await memories(cycling, 5, "Skill")
    for group in (ids, more, last):
        await tie(cycling, group, STRONG)
    run = await cycling.run("monthly")
    by_first = {one["members"][0]: one["id"] for one in candidates(cycling)}
    accepted = await accept(cycling, by_first[min(ids)])
    await reject(cycling, by_first[min(more)])
    kept = await cycling.undo(run)
    targets = {
        row["target_id"] for row in cycling.rows("SELECT target_id FROM cycle_actions WHERE id = ANY (%s)", kept)
    }
    assert targets == {by_first[min(ids)], by_first[min(more)]}
    assert {one["id"] for one in candidates(cycling)} == targets
    (action,) = cycling.rows("SELECT id FROM cycle_actions WHERE target_id = %s", by_first[min(ids)])
    with pytest.raises(ConflictError, match=str(accepted.memory.id)):
        await cycling.undo_one(action["id"])


async def canaries(cycling: Cycling, moment: datetime = NOW) -> tuple[list[str], dict[str, Any]]:
    """A canary in the first of five memories, and so in their candidate."""
    first = await cycling.memory(f"The {CANARY} sings.", "Reference", title=f"On {CANARY}", confidence=1.0)
    ids = [first, *await memories(cycling, 4)]
    for ident in ids[1:]:
        cycling.put("memories", ident, confidence=0.5)
    await tie(cycling, ids, STRONG)
    await cycling.run("monthly", moment)
    (candidate,) = candidates(cycling)
    assert CANARY in candidate["text"]
    return ids, candidate


@pytest.mark.parametrize("decided", ["open", "rejected", "accepted"])
async def test_what_was_made_of_a_memory_goes_with_it(cycling: Cycling, worker: WorkerContext, decided: str) -> None:
    ids, candidate = await canaries(cycling)
    if decided == "accepted":
        await accept(cycling, candidate["id"])
    elif decided == "rejected":
        await reject(cycling, candidate["id"])
    await drain(worker)
    assert places_with(cycling.urls, CANARY)
    await delete(cycling, ids[0])
    assert places_with(cycling.urls, CANARY) == {}
    await drain(worker)
    assert not await in_graph(worker.backend, cycling.tenant.tenant_id, CANARY)
    graph = await worker.backend.dump(cycling.tenant.tenant_id)
    assert {edge.id for edge in graph.edges.values()} == {
        str(row["id"]) for row in cycling.rows("SELECT id FROM edges")
    }
    assert [row["id"] for row in cycling.rows("SELECT id FROM memories WHERE label = 'Insight'")] == []


@pytest.mark.parametrize("decided", ["open", "accepted"])
async def test_what_was_made_of_a_memory_is_erased_with_it(
    cycling: Cycling, worker: WorkerContext, decided: str
) -> None:
    ids, candidate = await canaries(cycling)
    if decided == "accepted":
        insight = (await accept(cycling, candidate["id"])).memory
        # Nothing but the members tells of its origin.
        for row in cycling.rows("SELECT id FROM edges WHERE source_memory_id = %s", insight.id):
            answer = await cycling.client.delete(f"/v1/edges/{row['id']}", headers=cycling.tenant.headers("admin"))
            assert answer.is_success
    await drain(worker)
    receipt = await cycling.post(f"/v1/memories/{ids[0]}/erase")
    rows = {place["place"]: place["rows"] for place in receipt["places"]}
    assert (rows["insight_candidates"], rows["insight_members"], rows["memories"]) == (
        1,
        5,
        1 + (decided == "accepted"),
    )
    await drain(worker)
    assert places_with(cycling.urls, CANARY) == {}
    assert not await in_graph(worker.backend, cycling.tenant.tenant_id, CANARY)


@pytest.mark.parametrize("change", ["retracted", "readers"])
async def test_what_is_withdrawn_or_gets_other_readers_takes_all_with_it(cycling: Cycling, change: str) -> None:
    ids, candidate = await schema(cycling)
    await accept(cycling, candidate["id"])
    if change == "retracted":
        await patch(cycling, ids[2], status="retracted")
    else:
        await patch(cycling, ids[2], visibility="restricted", readers={"users": ["ann"]})
    assert candidates(cycling) == []
    assert cycling.rows("SELECT id FROM memories WHERE label = 'Insight'") == []


@pytest.mark.parametrize("fields", [{"text": "It says something else."}, {"title": "New"}, {"status": "archived"}])
async def test_what_changes_leaves_open_candidates_alone(cycling: Cycling, fields: dict[str, str]) -> None:
    ids, candidate = await schema(cycling)
    await patch(cycling, ids[0], tags=["harmless"])
    assert len(candidates(cycling)) == 1
    await patch(cycling, ids[0], **fields)
    assert candidates(cycling) == []
    assert candidate["status"] == "open"


async def test_what_changes_leaves_decided_ones_be(cycling: Cycling) -> None:
    ids, candidate = await schema(cycling)
    insight = (await accept(cycling, candidate["id"])).memory
    await patch(cycling, ids[0], text="It says something else.")
    assert [one["memory_id"] for one in candidates(cycling)] == [insight.id]


async def test_own_words_stay_when_a_member_goes(cycling: Cycling) -> None:
    ids, candidate = await schema(cycling)
    insight = (await accept(cycling, candidate["id"], title="Ours", text="Turbines matter to us.")).memory
    await delete(cycling, ids[0])
    assert candidates(cycling) == []
    assert [row["id"] for row in cycling.rows("SELECT id FROM memories WHERE label = 'Insight'")] == [insight.id]


async def test_the_database_knows_which_memories_hold(cycling: Cycling) -> None:
    (row,) = cycling.rows("SELECT prosrc FROM pg_proc WHERE proname = 'insights_of_changed'")
    assert f"NOT IN ({', '.join(repr(status) for status in HOLDING)})" in row["prosrc"]


async def test_a_run_goes_on_where_it_stood(cycling: Cycling, monkeypatch: pytest.MonkeyPatch) -> None:
    """One candidate a batch: what a batch has made does not change what the next ones are."""
    monkeypatch.setattr(forming, "BATCH", 1)
    groups = [await memories(cycling, 5, label) for label in ("Reference", "Resource", "Skill")]
    for group in groups:
        await tie(cycling, group, STRONG)
    trial = await cycling.run("monthly", dry_run=True)
    run = await cycling.run("monthly")
    assert cycling.actions(run) == cycling.actions(trial)
    assert sorted(one["members"] for one in candidates(cycling)) == sorted(map(sorted, groups))


async def test_a_large_community_is_proposed_by_what_is_tied_most_closely(
    cycling: Cycling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "LARGEST", 5)
    ids = await memories(cycling, 7)
    await tie(cycling, ids[:5], {**STRONG, "co_reference_count": 12})
    for loose in ids[5:]:
        for one in ids[:5]:
            cycling.put("edges", await cycling.edge(loose, one), **STRONG)
    await cycling.run("monthly")
    assert [one["members"] for one in candidates(cycling)] == [sorted(ids[:5])]


async def with_entity(cycling: Cycling) -> tuple[str, list[str]]:
    """A declared entity that a candidate is made of, beside five memories."""
    ids = await memories(cycling, 5)
    await tie(cycling, ids, STRONG)
    entity = str((await cycling.post("/v1/memory/entities", name="Kettle", entity_type="system"))["entity"]["id"])
    for memory in ids:
        made = await cycling.post("/v1/edges", type="ABOUT", **{"from": {"memory": memory}, "to": {"entity": entity}})
        cycling.put("edges", str(made["edge"]["id"]), **STRONG)
    return entity, ids


@pytest.mark.parametrize("change", ["gone", "hidden"])
@pytest.mark.parametrize("decided", ["open", "accepted"])
async def test_without_an_entity_a_candidate_is_made_anew_and_an_insight_stays(
    cycling: Cycling, change: str, decided: str
) -> None:
    entity, ids = await with_entity(cycling)
    await cycling.run("monthly")
    (candidate,) = candidates(cycling)
    assert candidate["members"] == sorted([*ids, entity])
    if decided == "accepted":
        await accept(cycling, candidate["id"])
    headers, path = cycling.tenant.headers("admin", user="ann"), f"/v1/memory/entities/{entity}"
    if change == "gone":
        answer = await cycling.client.delete(path, headers=headers)
    else:
        hidden = {"visibility": "restricted", "readers": {"users": ["ann"]}}
        answer = await cycling.client.patch(path, json=hidden, headers=headers)
    assert answer.is_success, answer.text
    left = [one["members"] for one in candidates(cycling)]
    assert left == ([sorted(ids)] if decided == "accepted" else [])
    assert len(cycling.rows("SELECT id FROM memories WHERE label = 'Insight'")) == len(left)
    await cycling.run("monthly", NOW + 31 * DAY)
    assert [one["members"] for one in candidates(cycling)] == [sorted(ids)]


async def test_names_that_not_all_readers_know_are_not_told(cycling: Cycling, worker: WorkerContext) -> None:
    """What an entity of few is called is not in the words of a candidate of all: only what the memories say is."""
    made = await cycling.client.post(
        "/v1/memory/entities",
        json={
            "name": f"{CANARY} Holding",
            "aliases": ["Kettle"],
            "entity_type": "organization",
            "visibility": "private",
            "user_id": "ann",
        },
        headers=cycling.tenant.headers("admin", user="ann"),
    )
    assert made.is_success, made.text
    ids = [await cycling.memory(f"Kettle number {number} boils.", "Reference") for number in range(5)]
    await drain(worker)
    await tie(cycling, ids, STRONG)
    await cycling.run("monthly")
    (candidate,) = candidates(cycling)
    assert CANARY not in candidate["title"] + candidate["text"]


async def test_an_older_run_does_not_take_back_what_a_later_one_made(cycling: Cycling) -> None:
    ids, candidate = await schema(cycling)
    (action,) = cycling.rows("SELECT id FROM cycle_actions")
    await patch(cycling, ids[0], title="New")
    await cycling.run("monthly", NOW + 31 * DAY)
    assert [one["id"] for one in candidates(cycling)] == [candidate["id"]]
    await cycling.undo_one(action["id"])
    assert [one["id"] for one in candidates(cycling)] == [candidate["id"]]


async def test_many_accept_at_once_and_one_is_heard(cycling: Cycling) -> None:
    _, candidate = await schema(cycling)
    outcomes = await asyncio.gather(*(accept(cycling, candidate["id"]) for _ in range(6)), return_exceptions=True)
    assert sum(isinstance(one, AcceptedInsight) for one in outcomes) == 1
    assert sum(isinstance(one, ConflictError) for one in outcomes) == 5
    assert len(cycling.rows("SELECT id FROM memories WHERE label = 'Insight'")) == 1


async def test_accepting_and_deleting_at_once_leave_no_derived_words(cycling: Cycling) -> None:
    for month in range(4):
        ids, candidate = await canaries(cycling, NOW + month * 31 * DAY)
        accepted, _ = await asyncio.gather(
            accept(cycling, candidate["id"]), delete(cycling, ids[0]), return_exceptions=True
        )
        assert isinstance(accepted, AcceptedInsight | NotFoundError), accepted
        assert places_with(cycling.urls, CANARY) == {}
        for ident in ids[1:]:
            await delete(cycling, ident)
