"""What held when: windows are half open, what is replaced is gone unless history is asked for."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.fixtures.service import TestTenant
from tests.integration.retrieval.conftest import Ask, Memory

pytestmark = pytest.mark.anyio

WORDS = {"vector": False, "graph": False}


async def act(client: httpx.AsyncClient, tenant: TestTenant, ident: str, call: str, body: Any = None) -> None:
    content = {} if body is None else {"json": body}
    answer = await client.post(f"/v1/memories/{ident}/{call}", headers=tenant.headers(), **content)
    assert answer.is_success, answer.text


def ids(pack: dict[str, Any]) -> set[str]:
    return {item["id"] for item in pack["items"]}


async def test_a_boundary_instant_belongs_to_one_side_only(remember: Memory, ask: Ask) -> None:
    first = await remember("The vendor is Ardal.", valid_to="2026-04-01T00:00:00Z")
    second = await remember("The vendor is Finch.", valid_from="2026-04-01T00:00:00+00:00")
    for moment, wanted in (
        ("2026-03-31T23:59:59.999999Z", first),
        ("2026-04-01T00:00:00Z", second),
        ("2026-04-01T02:00:00+02:00", second),
        ("2026-04-01T01:59:59+02:00", first),
        ("9999-12-31T00:00:00Z", second),
        ("0002-01-01T00:00:00Z", first),
    ):
        assert ids(await ask("who is the vendor?", as_of=moment)) == {wanted}, moment
    assert ids(await ask("who is the vendor?")) == {second}


async def test_an_empty_window_never_holds(remember: Memory, ask: Ask) -> None:
    moment = "2026-04-01T00:00:00Z"
    await remember("The vendor is Ardal.", valid_from=moment, valid_to=moment)
    assert ids(await ask("vendor", as_of=moment)) == set()


@pytest.mark.parametrize(
    ("call", "status"), [("supersede", "superseded"), ("archive", "archived"), ("retract", "retracted")]
)
async def test_what_is_no_longer_so_comes_with_history_only(
    client: httpx.AsyncClient, tenant: TestTenant, remember: Memory, ask: Ask, call: str, status: str
) -> None:
    old = await remember("Weighs 178 lbs.", subject="Alex", property="weight")
    new = await remember("Weighs 182 lbs.", subject="Alex", property="weight")
    await act(client, tenant, old, call, {"by": new} if call == "supersede" else None)
    assert ids(await ask("weighs", arms=WORDS)) == {new}
    assert ids(await ask("weighs")) == {new}
    pack = await ask("weighs", include=["history"])
    assert {item["id"]: item["status"] for item in pack["items"]} == {old: status, new: "active"}


async def test_what_was_replaced_since_is_what_held_then(
    client: httpx.AsyncClient, tenant: TestTenant, remember: Memory, ask: Ask
) -> None:
    old = await remember("The office is in Hamburg.")
    new = await remember("The office is in Bremen.", valid_from="2026-04-01T00:00:00Z")
    await act(client, tenant, old, "supersede", {"by": new})
    assert ids(await ask("where is the office?")) == {new}
    then = await ask("where is the office?", as_of="2026-03-01T00:00:00Z")
    assert [(item["id"], item["status"], item["superseded_by"]) for item in then["items"]] == [(old, "superseded", new)]


async def test_done_and_disputed_records_are_shown_as_such(
    client: httpx.AsyncClient, tenant: TestTenant, remember: Memory, ask: Ask
) -> None:
    done = await remember("Write the report on tea.", label="Commitment")
    doubted = await remember("The report on tea is finished.")
    await act(client, tenant, done, "complete")
    await act(client, tenant, doubted, "dispute")
    pack = await ask("report on tea")
    assert {item["id"]: item["status"] for item in pack["items"]} == {done: "completed", doubted: "disputed"}
    assert pack["conflicts"] == [{"kind": "disputed", "items": [doubted]}]


async def test_contradictions_among_the_items_are_named(remember: Memory, ask: Ask) -> None:
    one = await remember("The warehouse opens at eight.")
    other = await remember("The warehouse opens at nine.", edges=[{"type": "CONTRADICTS", "to": one}])
    pack = await ask("when does the warehouse open?")
    assert pack["conflicts"] == [{"kind": "contradicts", "items": [other, one]}]
    markdown = (await ask("when does the warehouse open?", path="/v1/context"))["markdown"]
    assert "contradict each other" in markdown


async def test_a_deleted_memory_is_gone_at_once(
    client: httpx.AsyncClient, tenant: TestTenant, remember: Memory, ask: Ask
) -> None:
    ident = await remember("The gearbox needs oil.")
    assert ids(await ask("gearbox")) == {ident}
    assert (await client.delete(f"/v1/memories/{ident}", headers=tenant.headers())).status_code == 200
    assert (await ask("gearbox"))["no_match"]


async def test_a_memory_is_found_at_commit(remember: Memory, ask: Ask) -> None:
    ident = await remember("The gearbox needs oil.")
    pack = await ask("gearbox")
    assert ids(pack) == {ident}
    assert pack["graph"]["state"] == "lagging"
    assert pack["graph"]["lag_events"] == 1
