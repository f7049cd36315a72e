"""`/v1/cycles` on a real Postgres: runs that are asked for, what they did, undoing it, and when they are due."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant, add_token, bearer

from memory_os.cycles.running import PAUSES_S, BatchFailedError, attempt
from memory_os.domain.cycles.rules import rules_of
from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.outbox.events import Outbox
from memory_os.outbox.queue import WORKER_ROLE
from memory_os.storage.database import Scope
from memory_os_workers.context import WorkerContext
from memory_os_workers.cycler import tend

pytestmark = pytest.mark.anyio

DAY = timedelta(days=1)
Json = dict[str, Any]


class Cycles:
    """A tenant, its cycles by the API, and a worker that makes them when told to."""

    def __init__(self, client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext) -> None:
        self.client, self.tenant, self.worker = client, tenant, worker

    async def ask(self, method: str, path: str, body: Json | None = None, role: str = "admin") -> httpx.Response:
        return await self.client.request(method, path, json=body, headers=self.tenant.headers(role))

    async def told(self, method: str, path: str, body: Json | None = None, role: str = "admin") -> Json:
        answer = await self.ask(method, path, body, role)
        assert answer.is_success, answer.text
        return dict(answer.json())

    async def opportunity(self, text: str, *, user: str | None = None) -> str:
        """One whose date has passed; with a user it is private to them."""
        body = {"text": text, "label": "Opportunity", "dedup": "off", "valid_to": "2026-01-01T00:00:00Z"}
        body |= {"valid_from": "2025-12-01T00:00:00Z"} | ({"visibility": "private"} if user else {})
        headers = self.tenant.headers("writer", user=user)
        answer = await self.client.post("/v1/memories", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["memory"]["id"])

    async def run(self, cycle: str = "nightly", **fields: Any) -> Json:
        """A run that was asked for, and made."""
        run = await self.told("POST", "/v1/cycles", {"cycle": cycle, **fields})
        assert run["status"] == "waiting"
        await self.make()
        return await self.told("GET", f"/v1/cycles/{run['id']}")

    async def make(self) -> None:
        """What the tenant has asked for is made; nothing is owed."""
        await tend(self.worker, self.tenant.tenant_id, datetime(2020, 1, 1, tzinfo=UTC))

    async def actions(self, run: Mapping[str, Any], query: str = "") -> list[Json]:
        return list((await self.told("GET", f"/v1/cycles/{run['id']}/actions{query}", role="reviewer"))["items"])


@pytest.fixture
def cycles(client: httpx.AsyncClient, tenant: TestTenant, worker: WorkerContext) -> Cycles:
    return Cycles(client, tenant, worker)


async def test_a_run_is_asked_for_made_and_followed(cycles: Cycles) -> None:
    memory = await cycles.opportunity("The fair is open.")
    asked = await cycles.ask("POST", "/v1/cycles", {"cycle": "nightly"})
    assert asked.status_code == 202
    run = asked.json()
    assert (run["status"], run["role"], run["dry_run"], run["counts"]) == ("waiting", "admin", False, {})
    assert run["period"] == datetime.now(UTC).strftime("%Y-%m-%d")
    await cycles.make()
    done = await cycles.told("GET", f"/v1/cycles/{run['id']}", role="operator")
    assert (done["status"], done["counts"]["expire_opportunities"]) == ("done", 1)
    assert list(done["counts"]) == [rule.name for rule in rules_of("nightly")]
    (action,) = await cycles.actions(run)
    assert (action["rule"], action["target_kind"], action["target_id"]) == ("expire_opportunities", "memory", memory)
    assert (action["before"], action["after"]) == ({"status": "active"}, {"status": "expired"})
    assert action["undone_at"] is None
    log = await cycles.told("GET", "/v1/audit?action=cycle.run")
    assert [entry["target_id"] for entry in log["items"]] == [run["id"]]


async def test_a_period_has_one_run_until_it_is_undone(cycles: Cycles) -> None:
    await cycles.opportunity("The fair is open.")
    run = await cycles.run()
    again = await cycles.ask("POST", "/v1/cycles", {"cycle": "nightly"})
    assert again.status_code == 409
    assert again.json()["run_id"] == run["id"]
    assert run["id"] in again.json()["detail"]
    assert (await cycles.run(dry_run=True))["status"] == "done"  # it has no period to itself
    yesterday = (datetime.now(UTC) - DAY).isoformat()
    assert (await cycles.run(moment=yesterday))["period"] != run["period"]
    undone = await cycles.told("POST", f"/v1/cycles/{run['id']}/undo")
    assert (undone["run"]["status"], undone["undone"], undone["kept"]) == ("undone", 1, 0)
    assert (await cycles.run())["id"] != run["id"]
    assert await cycles.ask("POST", f"/v1/cycles/{run['id']}/undo") is not None
    assert (await cycles.ask("POST", f"/v1/cycles/{run['id']}/undo")).status_code == 409


async def test_the_same_key_asks_once(cycles: Cycles) -> None:
    headers = cycles.tenant.headers("admin") | {"Idempotency-Key": "one"}
    asked = [await cycles.client.post("/v1/cycles", json={"cycle": "monthly"}, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in asked] == [202, 202]
    assert asked[0].json() == asked[1].json()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"cycle": "daily"}, "/cycle"),
        ({"cycle": "nightly", "moment": "2999-01-01T00:00:00Z"}, "/moment"),
        ({"cycle": "nightly", "moment": "0001-01-01T00:00:00Z"}, "/moment"),
        ({"cycle": "nightly", "moment": "2026-01-01T00:00:00"}, "/moment"),
    ],
)
async def test_what_can_not_be_run_is_refused(cycles: Cycles, body: Json, pointer: str) -> None:
    answer = await cycles.ask("POST", "/v1/cycles", body)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


async def test_runs_and_actions_are_listed_page_by_page(cycles: Cycles) -> None:
    memories = [await cycles.opportunity(f"Fair number {number} is open.") for number in range(3)]
    night, dry = await cycles.run(), await cycles.run("monthly", dry_run=True)
    first = await cycles.told("GET", "/v1/cycles?limit=1", role="reviewer")
    assert [run["id"] for run in first["items"]] == [dry["id"]]
    second = await cycles.told("GET", f"/v1/cycles?limit=1&cursor={first['next_cursor']}")
    assert [run["id"] for run in second["items"]] == [night["id"]]
    assert second["next_cursor"] is None
    for query, found in (("cycle=nightly", [night]), ("status=done&cycle=monthly", [dry]), ("status=failed", [])):
        listed = await cycles.told("GET", f"/v1/cycles?{query}")
        assert [run["id"] for run in listed["items"]] == [run["id"] for run in found]
    seen, cursor = list[str](), ""
    for _ in memories:
        page = await cycles.told("GET", f"/v1/cycles/{night['id']}/actions?limit=1{cursor}")
        seen += [action["target_id"] for action in page["items"]]
        cursor = f"&cursor={page['next_cursor']}"
    assert (sorted(seen), page["next_cursor"]) == (sorted(memories), None)
    assert await cycles.actions(night, "?rule=decay_edges") == []
    assert len(await cycles.actions(night, "?rule=expire_opportunities")) == 3
    for path in ("/v1/cycles?cycle=x", "/v1/cycles?status=x", f"/v1/cycles/{night['id']}/actions?rule=x"):
        assert (await cycles.ask("GET", path)).status_code == 422
    for cursor in ("x", "LTE", "OTk5OTk5OTk5OTk5", "%C3%A9"):
        assert (await cycles.ask("GET", f"/v1/cycles/{night['id']}/actions?cursor={cursor}")).status_code == 422


async def test_who_reads_and_who_asks(
    cycles: Cycles, tenant_factory: TenantFactory, database_urls: DatabaseUrls
) -> None:
    run = await cycles.run()
    paths = ("/v1/cycles", f"/v1/cycles/{run['id']}", f"/v1/cycles/{run['id']}/actions", "/v1/cycles/schedule")
    root = bearer(add_token(database_urls.owner_url, INSTANCE_TENANT, "root"))
    for path in paths:
        for role, status in (("reader", 403), ("writer", 403), ("reviewer", 200), ("operator", 200), ("admin", 200)):
            assert (await cycles.ask("GET", path, role=role)).status_code == status, (path, role)
        assert (await cycles.client.get(path, headers=root)).status_code == 403
    for role in ("reader", "writer", "reviewer", "operator"):
        assert (await cycles.ask("POST", "/v1/cycles", {"cycle": "weekly"}, role)).status_code == 403
        assert (await cycles.ask("POST", f"/v1/cycles/{run['id']}/undo", role=role)).status_code == 403
        assert (await cycles.ask("PUT", "/v1/cycles/schedule", {}, role)).status_code == 403
    stranger = Cycles(cycles.client, tenant_factory(), cycles.worker)
    for method, path in (("GET", paths[1]), ("GET", paths[2]), ("POST", f"{paths[1]}/undo")):
        assert (await stranger.ask(method, path)).status_code == 404
        assert (await cycles.ask(method, path.replace(run["id"], str(uuid4())))).status_code == 404


async def test_an_admin_undoes_what_was_done_to_memories_that_the_admin_may_not_read(cycles: Cycles) -> None:
    hidden = await cycles.opportunity("Ann has a secret chance.", user="ann")
    seen = await cycles.opportunity("The fair is open.")
    run = await cycles.run()
    actions = await cycles.actions(run)
    assert {action["target_id"] for action in actions} == {hidden, seen}
    assert "secret" not in str(actions)
    assert (await cycles.ask("GET", f"/v1/memories/{hidden}")).status_code == 404
    (mine,) = [action for action in actions if action["target_id"] == hidden]
    one = await cycles.told("POST", f"/v1/cycles/actions/{mine['id']}/undo")
    assert one["action"]["undone_at"] is not None
    assert one["position"] > 0
    assert (await cycles.ask("POST", f"/v1/cycles/actions/{mine['id']}/undo")).status_code == 409
    assert (await cycles.told("GET", f"/v1/cycles/{run['id']}"))["status"] == "done"
    undone = await cycles.told("POST", f"/v1/cycles/{run['id']}/undo")
    assert (undone["undone"], undone["run"]["status"]) == (1, "undone")
    for memory, headers in ((hidden, cycles.tenant.headers(user="ann")), (seen, cycles.tenant.headers())):
        answer = await cycles.client.get(f"/v1/memories/{memory}", headers=headers)
        assert answer.json()["status"] == "active"
    kinds = [entry["action"] for entry in (await cycles.told("GET", "/v1/audit?limit=200"))["items"]]
    assert {"cycle.run", "cycle.undo", "cycle.undo_action"} <= set(kinds)


async def test_a_name_that_was_kept_to_bring_an_entity_back_is_told_to_nobody(cycles: Cycles) -> None:
    run = await cycles.run()
    with psycopg.connect(cycles.tenant.owner_url) as connection:
        connection.execute(
            "INSERT INTO cycle_actions (tenant_id, id, run_id, number, rule, target_kind, target_id, before, after) "
            "VALUES (%s, %s, %s, 1000, 'drop_entities', 'entity', %s, %s, '{}')",
            (cycles.tenant.tenant_id, uuid4(), run["id"], uuid4(), '{"name": "Zebra", "entity_type": "unknown"}'),
        )
    (action,) = await cycles.actions(run, "?rule=drop_entities")
    assert action["before"] == {"entity_type": "unknown"}


async def test_the_last_action_that_is_undone_ends_the_run(cycles: Cycles) -> None:
    await cycles.opportunity("The fair is open.")
    run = await cycles.run()
    (action,) = await cycles.actions(run)
    await cycles.told("POST", f"/v1/cycles/actions/{action['id']}/undo")
    assert (await cycles.told("GET", f"/v1/cycles/{run['id']}"))["status"] == "undone"


async def test_what_has_changed_since_stays_and_is_told(cycles: Cycles) -> None:
    kept = await cycles.opportunity("The fair is open.")
    gone = await cycles.opportunity("The market is open.")
    back = await cycles.opportunity("The show is open.")
    run = await cycles.run()
    by_target = {action["target_id"]: action["id"] for action in await cycles.actions(run)}
    await cycles.told("POST", f"/v1/memories/{kept}/archive", {})
    await cycles.ask("DELETE", f"/v1/memories/{gone}")
    undone = await cycles.told("POST", f"/v1/cycles/{run['id']}/undo")
    assert (undone["undone"], undone["kept"], undone["run"]["status"]) == (1, 2, "done")
    assert {one["id"] for one in undone["actions"]} == {by_target[kept], by_target[gone]}
    assert all(one["reason"] for one in undone["actions"])
    assert (await cycles.told("GET", f"/v1/memories/{back}"))["status"] == "active"
    answer = await cycles.ask("POST", f"/v1/cycles/actions/{by_target[gone]}/undo")
    assert answer.status_code == 409


async def test_what_was_only_predicted_or_goes_on_is_not_undone(cycles: Cycles) -> None:
    await cycles.opportunity("The fair is open.")
    dry = await cycles.run(dry_run=True)
    (action,) = await cycles.actions(dry)
    waiting = await cycles.told("POST", "/v1/cycles", {"cycle": "nightly"})
    for path in (f"{dry['id']}/undo", f"actions/{action['id']}/undo", f"{waiting['id']}/undo"):
        assert (await cycles.ask("POST", f"/v1/cycles/{path}")).status_code == 409
    assert (await cycles.ask("POST", f"/v1/cycles/{waiting['id']}/resume")).status_code == 409


async def test_a_failed_run_is_resumed(cycles: Cycles, monkeypatch: pytest.MonkeyPatch) -> None:
    await cycles.opportunity("The fair is open.")
    run = await cycles.told("POST", "/v1/cycles", {"cycle": "nightly"})
    database, scope = cycles.worker.database, Scope(WORKER_ROLE, cycles.tenant.tenant_id)

    async def fail(*_: object) -> None:
        raise ValueError("no such luck")

    with monkeypatch.context() as patched:
        patched.setattr("memory_os.cycles.running._note", fail)
        for number in range(len(PAUSES_S) + 1):
            with pytest.raises(BatchFailedError) as caught:
                await attempt(database, scope, Outbox(enabled=True), UUID(run["id"]))
            assert caught.value.attempts == number + 1
            told = await cycles.told("GET", f"/v1/cycles/{run['id']}")
            last = number == len(PAUSES_S)
            assert (told["status"], told["attempts"]) == ("failed" if last else "running", number + 1)
            assert told["error"].startswith("ValueError in fail, test_cycles.py:")
            assert (told["retry_at"] is None) == last
    await cycles.make()
    assert (await cycles.told("GET", f"/v1/cycles/{run['id']}"))["status"] == "failed"
    assert (await cycles.ask("POST", "/v1/cycles", {"cycle": "nightly"})).status_code == 409
    assert (await cycles.told("POST", f"/v1/cycles/{run['id']}/resume"))["status"] == "running"
    await cycles.make()
    done = await cycles.told("GET", f"/v1/cycles/{run['id']}")
    assert (done["status"], done["error"], done["counts"]["expire_opportunities"]) == ("done", None, 1)


async def test_the_schedule_is_told_and_set(cycles: Cycles) -> None:
    with psycopg.connect(cycles.tenant.owner_url) as connection:
        connection.execute(
            "UPDATE tenants SET time_zone = 'America/New_York' WHERE tenant_id = %s", (cycles.tenant.tenant_id,)
        )
    usual = await cycles.told("GET", "/v1/cycles/schedule", role="reviewer")
    assert usual["time_zone"] == "America/New_York"
    assert usual["nightly"]["cron"] == "0 2 * * *"
    due = datetime.fromisoformat(usual["nightly"]["next_due"])
    assert (due.hour, due.minute) == (2, 0)
    assert due.utcoffset() in (timedelta(hours=-5), timedelta(hours=-4))
    assert due > datetime.now(UTC)
    body = {"nightly": {"cron": "30 3 * * 1-5"}, "weekly": {"enabled": False}}
    changed = await cycles.told("PUT", "/v1/cycles/schedule", body)
    assert (changed["nightly"]["cron"], changed["weekly"]["enabled"], changed["weekly"]["next_due"]) == (
        *("30 3 * * 1-5", False),
        None,
    )
    assert changed["monthly"] == usual["monthly"]
    assert await cycles.told("GET", "/v1/cycles/schedule") == changed
    assert await cycles.told("PUT", "/v1/cycles/schedule", {}) == usual


async def test_a_schedule_with_faults_is_refused_whole(cycles: Cycles) -> None:
    before = await cycles.told("GET", "/v1/cycles/schedule")
    body = {
        "nightly": {"cron": "0 2 * *"},
        "weekly": {"cron": "61 2 * * *"},
        "monthly": {"cron": "0 0 30 2 *"},
    }
    answer = await cycles.ask("PUT", "/v1/cycles/schedule", body)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/{name}/cron" for name in body]
    assert (await cycles.ask("PUT", "/v1/cycles/schedule", {"hourly": {}})).status_code == 422
    assert await cycles.told("GET", "/v1/cycles/schedule") == before
