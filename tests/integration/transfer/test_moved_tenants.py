"""A tenant's export, imported as another tenant: everything is there, is found, and stays as private as it was."""

from __future__ import annotations

import stat
from typing import Any

import httpx
import pytest
from tests.fixtures.acting import rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant
from tests.fixtures.worker import dump
from tests.integration.transfer.conftest import (
    QUESTIONS,
    Bakery,
    Export,
    Import,
    catch_up,
    counts,
    lines_of,
    records_of,
)

from memory_os.domain.ids import derived_entity_id

pytestmark = pytest.mark.anyio

READERS: tuple[tuple[str | None, tuple[str, ...]], ...] = (
    (None, ()),
    ("ann", ()),
    ("bob", ()),
    ("dora", ("bakers",)),
    ("cleo", ()),
)


async def ask(
    client: httpx.AsyncClient, tenant: TestTenant, query: str, user: str | None, groups: tuple[str, ...]
) -> list[dict[str, Any]]:
    headers = tenant.headers("reader", user=user, groups=groups)
    answer = await client.post("/v1/retrieve", json={"query": query, "include": ["history"]}, headers=headers)
    assert answer.status_code == 200, answer.text
    pack = answer.json()
    assert pack["graph"]["state"] == "current", pack["graph"]
    keys = ("type", "id", "label", "text", "status", "date", "valid_from", "valid_to", "confidence")
    derived = str(derived_entity_id(tenant.tenant_id, "mill lane"))
    return [
        {**{key: item.get(key) for key in keys}, "score": round(item["score"], 4)}
        | {"id": "mill" if item["id"] == derived else item["id"]}
        for item in pack["items"]
    ]


async def test_a_moved_tenant_answers_as_before(
    bakery: Bakery,
    tenant_factory: TenantFactory,
    export: Export,
    bring_in: Import,
    database_urls: DatabaseUrls,
) -> None:
    copy = tenant_factory()
    first = await export(bakery.tenant, "first.jsonl")
    told = await bring_in(copy, first)
    assert told[0].startswith(f"{len(records_of(first))} records imported")
    await catch_up(bakery.worker, copy)
    assert counts(database_urls, copy.tenant_id) == counts(database_urls, bakery.tenant.tenant_id)
    found = 0
    for query in QUESTIONS:
        for user, groups in READERS:
            before = await ask(bakery.client, bakery.tenant, query, user, groups)
            assert await ask(bakery.client, copy, query, user, groups) == before
            found += len(before)
    assert found > 100
    second = await export(copy, "second.jsonl")
    before, after = lines_of(first), lines_of(second)
    assert after[1:-1] == before[1:-1]
    assert after[0]["counts"] == before[0]["counts"] == before[-1]["counts"] == after[-1]["counts"]


async def test_what_was_private_stays_private(
    bakery: Bakery, tenant_factory: TenantFactory, export: Export, bring_in: Import
) -> None:
    copy = tenant_factory()
    await bring_in(copy, await export(bakery.tenant, "all.jsonl"))
    await catch_up(bakery.worker, copy)

    async def sees(name: str, user: str | None, groups: tuple[str, ...] = ()) -> bool:
        headers = copy.headers("admin", user=user, groups=groups)
        answer = await bakery.client.get(f"/v1/memories/{bakery.ids[name]}", headers=headers)
        return answer.status_code == 200

    assert [await sees("secret", user) for user in ("ann", "bob", None)] == [True, False, False]
    assert [await sees("salary", user) for user in ("ann", "bob", None)] == [False, True, False]
    seen = [("cleo", ()), ("dora", ("bakers",)), ("dora", ()), (None, ())]
    assert [await sees("recipe", user, groups) for user, groups in seen] == [True, True, False, False]


async def test_the_graph_of_the_copy_is_that_of_the_original(
    bakery: Bakery, tenant_factory: TenantFactory, export: Export, bring_in: Import
) -> None:
    copy = tenant_factory()
    await bring_in(copy, await export(bakery.tenant, "all.jsonl"))
    await catch_up(bakery.worker, copy)
    one, other = await dump(bakery.worker, bakery.tenant.tenant_id), await dump(bakery.worker, copy.tenant_id)
    assert other.memories == one.memories
    assert other.links.keys() == one.links.keys()
    assert other.edges.keys() == one.edges.keys()
    assert len(other.entities) == len(one.entities)


async def test_a_file_is_private_whole_and_without_what_is_derived(bakery: Bakery, export: Export) -> None:
    path = await export(bakery.tenant, "all.jsonl")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.glob("*all.jsonl*")] == ["all.jsonl"]
    lines = lines_of(path)
    assert {line["type"] for line in lines[1:-1]} == {kind for kind, count in lines[0]["counts"].items() if count}
    assert all(lines[0]["counts"].values()), "the bakery has something of everything"
    text = path.read_text(encoding="utf-8")
    assert str(bakery.tenant.tenant_id) not in text
    assert bakery.ids["mill"] not in text
    assert '"embedding' not in text
    assert '"search"' not in text
    derived = [record for record in records_of(path, "entity") if not record["declared"]]
    assert [record["name"] for record in derived] == ["Mill Lane"]
    order = [record["id"] for record in records_of(path, "memory")]
    chain = [order.index(bakery.ids[name]) for name in ("rye 3", "rye 2", "rye")]
    assert chain == sorted(chain)


async def test_doing_it_again_changes_nothing(
    bakery: Bakery, tenant_factory: TenantFactory, export: Export, bring_in: Import, database_urls: DatabaseUrls
) -> None:
    copy = tenant_factory()
    path = await export(bakery.tenant, "all.jsonl")
    await bring_in(copy, path)
    await catch_up(bakery.worker, copy)
    before = counts(database_urls, copy.tenant_id)
    events = rows_of(database_urls, "SELECT count(*) AS n FROM outbox_events WHERE tenant_id = %s", copy.tenant_id)
    told = await bring_in(copy, path)
    total = len(records_of(path))
    assert told[0] == "0 records imported: none"
    assert told[1].startswith(f"{total} were there already")
    assert counts(database_urls, copy.tenant_id) == before
    assert (
        rows_of(database_urls, "SELECT count(*) AS n FROM outbox_events WHERE tenant_id = %s", copy.tenant_id) == events
    )


async def test_it_goes_back_into_the_tenant_that_it_came_from(bakery: Bakery, export: Export, bring_in: Import) -> None:
    path = await export(bakery.tenant, "all.jsonl")
    gone = bakery.ids["dough"]
    answer = await bakery.client.delete(f"/v1/memories/{gone}", headers=bakery.tenant.headers("admin"))
    assert answer.is_success, answer.text
    await bring_in(bakery.tenant, path)
    await catch_up(bakery.worker, bakery.tenant)
    back = await bakery.client.get(f"/v1/memories/{gone}", headers=bakery.tenant.headers())
    assert back.status_code == 200
    again = await export(bakery.tenant, "again.jsonl")
    assert lines_of(again)[1:-1] == lines_of(path)[1:-1]


async def test_both_are_in_the_audit_log(
    bakery: Bakery, tenant_factory: TenantFactory, export: Export, bring_in: Import, database_urls: DatabaseUrls
) -> None:
    copy = tenant_factory()
    path = await export(bakery.tenant, "all.jsonl")
    await bring_in(copy, path)
    found = rows_of(
        database_urls,
        "SELECT tenant_id, action, role, target_id, detail FROM audit_log WHERE action LIKE 'tenant.%%' ORDER BY at",
    )
    assert [(row["tenant_id"], row["action"], row["target_id"]) for row in found] == [
        (bakery.tenant.tenant_id, "tenant.export", str(bakery.tenant.tenant_id)),
        (copy.tenant_id, "tenant.import", str(copy.tenant_id)),
    ]
    assert found[1]["detail"]["records"]["memory"] == lines_of(path)[0]["counts"]["memory"]
