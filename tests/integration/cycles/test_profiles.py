"""Profiles are written where something changed, hold what their audience may know, and show what a reader may read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.fixtures.worker import drain
from tests.integration.cycles.conftest import DAY, Cycling

from memory_os.cycles.planning import Run
from memory_os.cycles.profile_model import ProfileMemory
from memory_os.cycles.profiling import PROFILES
from memory_os.cycles.reading_profiles import compare_profiles, get_profile, list_profiles
from memory_os.domain.cycles.profiles import LONGEST
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.errors import ConflictError, NotFoundError
from memory_os.storage.database import Scope, Transaction

pytestmark = pytest.mark.anyio

SOON = datetime.now(UTC).replace(microsecond=0) + 2 * DAY
"""A moment by which everything that a test stores is there."""

ANN = "ann-q7"


class Reading:
    """What somebody reads of profiles."""

    def __init__(self, cycling: Cycling, user: str | None) -> None:
        self.cycling = cycling
        self.scope = Scope.of(Principal(cycling.tenant.tenant_id, "reader", user_id=user))

    async def run(self, work: Any) -> Any:
        return await self.cycling.services.database.run(self.scope, work)

    async def get(self, user: str | None, version: int | None = None) -> Any:
        return await self.run(lambda tx: get_profile(tx, user, version))

    async def texts(self, user: str | None, version: int | None = None) -> dict[str, list[str]]:
        return shown((await self.get(user, version)).sections)


def shown(sections: Any) -> dict[str, list[str]]:
    found = {
        name: [one.text if isinstance(one, ProfileMemory) else one.name for one in getattr(sections, name)]
        for name in ("evergreen", "goals", "commitments", "entities")
    }
    return {name: texts for name, texts in found.items() if texts}


async def ours(cycling: Cycling, text: str, label: str = "Attribute", **fields: Any) -> str:
    """A memory of ann's own, hers alone unless said otherwise."""
    body = {"text": text, "label": label, "dedup": "off", "visibility": "private", **fields}
    headers = cycling.tenant.headers("writer", user=ANN)
    answer = await cycling.client.post("/v1/memories", json=body, headers=headers)
    assert answer.is_success, answer.text
    return str(answer.json()["memory"]["id"])


async def world(cycling: Cycling) -> dict[str, str]:
    """Something for each section of two profiles, and what none of them holds."""
    made = {
        "known": await cycling.memory("The shop opens at nine."),
        "goal": await cycling.memory("Open a second shop.", "Goal"),
        "event": await cycling.memory("The shop flooded.", "Event"),
        "own": await ours(cycling, "Prefers tea.", "Preference"),
        "shared": await ours(cycling, "Runs the shop.", "Skill", visibility="tenant"),
        "promise": await ours(cycling, "Will call Ben Zander.", "Commitment"),
        "other": await ours(cycling, "Ben Zander called Kara Lund.", "Event"),
        "past": await ours(cycling, "Believed in luck.", "Belief"),
        "later": await ours(cycling, "Will be a judge.", "Goal"),
    }
    cycling.put("memories", made["past"], valid_to=SOON)
    cycling.put("memories", made["later"], valid_from=SOON + timedelta(microseconds=1))
    await drain(cycling.worker)
    return made


async def test_each_audience_has_its_own(cycling: Cycling) -> None:
    await world(cycling)
    await cycling.run("weekly", SOON)
    ann = Reading(cycling, ANN)
    assert await ann.texts(None) == {
        "evergreen": ["Runs the shop.", "The shop opens at nine."],
        "goals": ["Open a second shop."],
    }
    assert await ann.texts(ANN) == {
        "evergreen": ["Runs the shop.", "Prefers tea."],
        "commitments": ["Will call Ben Zander."],
        "entities": ["Ben Zander", "Kara Lund"],
    }
    with pytest.raises(NotFoundError):
        await Reading(cycling, "bob").get(ANN)
    assert await Reading(cycling, "bob").run(lambda tx: list_profiles(tx, ANN, None, 10)) == await ann.run(
        lambda tx: list_profiles(tx, "nobody", None, 10)
    )
    assert await Reading(cycling, "bob").texts(None) == await ann.texts(None)


async def test_only_what_changed_makes_a_version(cycling: Cycling) -> None:
    made = await world(cycling)
    await cycling.run("weekly", SOON)
    assert cycling.actions(await cycling.run("weekly", SOON - timedelta(hours=1) + 7 * DAY, dry_run=True))
    # By then the belief has ended and the goal holds: so far only ann's has changed.
    second = await cycling.run("weekly", SOON + 7 * DAY)
    assert [(one["before"], one["after"]) for one in profile_actions(cycling, second)] == [
        ({"version": 1}, {"version": 2, "added": 1, "removed": 0})
    ]
    third = await cycling.run("weekly", SOON + 14 * DAY)
    assert profile_actions(cycling, third) == []
    cycling.put("memories", made["own"], confidence=0.1)  # another order alone is no change
    assert profile_actions(cycling, await cycling.run("weekly", SOON + 21 * DAY)) == []
    ann = Reading(cycling, ANN)
    diff = await ann.run(lambda tx: compare_profiles(tx, ANN))
    assert (diff.before, diff.after, shown(diff.added), shown(diff.removed)) == (
        1,
        2,
        {"goals": ["Will be a judge."]},
        {},
    )
    back = await ann.run(lambda tx: compare_profiles(tx, ANN, 2, 1))
    assert (shown(back.added), shown(back.removed)) == ({}, {"goals": ["Will be a judge."]})
    first = await ann.run(lambda tx: compare_profiles(tx, ANN, 0, 1))
    assert shown(first.added) == await ann.texts(ANN, 1)


def profile_actions(cycling: Cycling, run: Any) -> list[dict[str, Any]]:
    return [one for one in cycling.actions(run) if one["rule"] == "write_profiles"]


async def test_versions_are_listed_newest_first(cycling: Cycling) -> None:
    await world(cycling)
    for week in range(3):
        await cycling.run("weekly", SOON + 7 * week * DAY)
        await cycling.memory(f"Fact of week {week}.")
    reading, cursor, seen = Reading(cycling, None), None, list[int]()
    while True:
        page = await reading.run(lambda tx, cursor=cursor: list_profiles(tx, None, cursor, 2))
        seen += [one.version for one in page.items]
        if (cursor := page.next_cursor) is None:
            break
    assert seen == [3, 2, 1]


async def test_what_is_gone_or_hidden_is_absent(cycling: Cycling) -> None:
    made = await world(cycling)
    await cycling.run("weekly", SOON)
    cycling.put("memories", made["shared"], visibility="private")
    answer = await cycling.client.delete(
        f"/v1/memories/{made['promise']}", headers=cycling.tenant.headers("admin", user=ANN)
    )
    assert answer.is_success, answer.text
    assert await Reading(cycling, "bob").texts(None) == {
        "evergreen": ["The shop opens at nine."],
        "goals": ["Open a second shop."],
    }
    assert await Reading(cycling, ANN).texts(None) == {
        "evergreen": ["Runs the shop.", "The shop opens at nine."],
        "goals": ["Open a second shop."],
    }
    assert "commitments" not in await Reading(cycling, ANN).texts(ANN)
    diff = await Reading(cycling, "bob").run(lambda tx: compare_profiles(tx, None))
    assert shown(diff.added)["evergreen"] == ["The shop opens at nine."]


async def test_entities_that_the_audience_may_not_read_take_no_place(cycling: Cycling) -> None:
    made = await cycling.post("/v1/memory/entities", name="Kettle Works", entity_type="place")
    await cycling.memory("We buy from Kettle Works.", "Event")
    await ours(cycling, "I buy from Kettle Works.", "Event")
    await drain(cycling.worker)
    cycling.put("entities", made["entity"]["id"], visibility="restricted", reader_users=[ANN])
    await cycling.run("weekly", SOON)
    rows = cycling.rows("SELECT user_id, content FROM profiles")
    assert [row["user_id"] for row in rows if made["entity"]["id"] in row["content"].get("entities", [])] == [ANN]


async def test_a_section_has_its_bound_and_keeps_the_surest(cycling: Cycling) -> None:
    for number in range(LONGEST + 3):
        ident = await cycling.memory(f"Fact {number}.")
        cycling.put("memories", ident, confidence=0.5 + number / 1000)
    await cycling.run("weekly", SOON)
    texts = (await Reading(cycling, None).texts(None))["evergreen"]
    assert texts == [f"Fact {number}." for number in range(LONGEST + 2, 2, -1)]


async def test_a_dry_run_predicts_exactly_and_writes_none(cycling: Cycling) -> None:
    await world(cycling)
    predicted = await cycling.run("weekly", SOON, dry_run=True)
    assert cycling.rows("SELECT id FROM profiles") == []
    made = await cycling.run("weekly", SOON)
    assert profile_actions(cycling, made) == profile_actions(cycling, predicted)
    assert len(profile_actions(cycling, made)) == 2


async def test_undoing_removes_the_newest_alone(cycling: Cycling) -> None:
    made = await world(cycling)
    first = await cycling.run("weekly", SOON)
    before = cycling.rows("SELECT * FROM profiles ORDER BY id")
    await cycling.memory("A new fact.")
    cycling.put("memories", made["own"], status="retracted")
    second = await cycling.run("weekly", SOON + 7 * DAY)
    action = "SELECT id FROM cycle_actions WHERE run_id = %s AND rule = 'write_profiles' ORDER BY number"
    for one in cycling.rows(action, first):
        with pytest.raises(ConflictError, match="later version"):
            await cycling.undo_one(one["id"])
    for one in cycling.rows(action, second):
        await cycling.undo_one(one["id"])
    assert cycling.rows("SELECT * FROM profiles ORDER BY id") == before
    for one in cycling.rows(action, first):
        await cycling.undo_one(one["id"])
    assert cycling.rows("SELECT * FROM profiles") == []


async def test_an_admin_undoes_a_run_without_reading_whom_it_was_about(cycling: Cycling) -> None:
    await world(cycling)
    run = await cycling.run("weekly", SOON)
    answer = await cycling.client.post(f"/v1/cycles/{run}/undo", headers=cycling.tenant.headers("admin"))
    assert answer.is_success, answer.text
    assert (answer.json()["undone"], answer.json()["kept"]) == (2, 0)
    assert ANN not in answer.text
    assert cycling.rows("SELECT id FROM profiles") == []


async def test_a_user_who_is_erased_has_no_profile_any_more(cycling: Cycling) -> None:
    await world(cycling)
    await cycling.run("weekly", SOON)
    answer = await cycling.client.delete(f"/v1/users/{ANN}", headers=cycling.tenant.headers("admin"))
    assert answer.is_success, answer.text
    assert {place["place"]: place["rows"] for place in answer.json()["places"]}["profiles"] == 1
    assert cycling.rows("SELECT user_id FROM profiles") == [{"user_id": None}]
    told = "SELECT id FROM {} AS t WHERE strpos(t::text, %s) > 0"
    assert [cycling.rows(told.format(table), ANN) for table in ("cycle_actions", "cycle_runs")] == [[], []]
    run = await cycling.run("weekly", SOON + 7 * DAY)
    assert [one["after"]["version"] for one in profile_actions(cycling, run)] == [2]


async def test_a_user_who_is_erased_between_plan_and_writing_does_not_come_back(cycling: Cycling) -> None:
    await world(cycling)

    async def overtaken(tx: Transaction) -> int:
        run = Run(new_id(), "weekly", SOON, Principal(cycling.tenant.tenant_id, "cycle"), cycling.outbox)
        plan = await PROFILES.plan(tx, run, {"after": "00000000-0000-0000-0000-000000000000"})
        answer = await cycling.client.delete(f"/v1/users/{ANN}", headers=cycling.tenant.headers("admin"))
        assert (answer.status_code, len(plan.changes)) == (200, 1)
        return len((await PROFILES.make(tx, run, plan.changes)).changes)

    assert await cycling.worker.database.run(cycling.scope, overtaken) == 0
    assert cycling.rows("SELECT id FROM profiles") == []


async def test_many_users_are_gone_through_in_batches(cycling: Cycling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_os.cycles.profiling.BATCH", 2)
    users = ["a", "b", "NULL", "o'\"q7 {;}", "é", "null"]
    for user in users:
        body = {"text": "Mine.", "label": "Value", "dedup": "off", "visibility": "private"}
        ident = await ours(cycling, **body)
        cycling.put("memories", ident, user_id=user)
    await cycling.run("weekly", SOON)
    assert {row["user_id"] for row in cycling.rows("SELECT user_id FROM profiles")} == set(users)
    assert cycling.rows("SELECT status, cursor FROM cycle_runs") == [{"status": "done", "cursor": None}]
