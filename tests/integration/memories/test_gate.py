"""The dedup gate over REST on a real Postgres: what merges, what is asked about, and what never merges."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TestTenant

from memory_os.memories.gate import Gate

pytestmark = pytest.mark.anyio

MEMORIES = "/v1/memories"


async def store(client: httpx.AsyncClient, headers: dict[str, str], text: str, **fields: Any) -> httpx.Response:
    body = {"text": text, "label": "Preference", **fields}
    answer = await client.post(MEMORIES, json=body, headers=headers)
    assert answer.status_code < 300, answer.text
    return answer


async def count(client: httpx.AsyncClient, headers: dict[str, str]) -> int:
    return len((await client.get(MEMORIES, headers=headers)).json()["items"])


def rows_of(urls: DatabaseUrls, query: str, *values: object) -> list[dict[str, Any]]:
    with psycopg.connect(urls.owner_url, row_factory=dict_row) as connection:
        return connection.execute(query, values).fetchall()


async def test_the_same_words_are_one_memory_whatever_the_label_case_and_spacing(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    first = await store(client, headers, "Mara prefers direct feedback.")
    again = await store(client, headers, "  mara   PREFERS direct feedback", label="Behavior", confidence=0.4)
    assert (first.status_code, again.status_code) == (201, 200)
    answer = again.json()
    assert (answer["outcome"], answer["duplicate_of"]) == ("merged", first.json()["memory"]["id"])
    assert answer["rule"] == "exact"
    assert answer["memory"]["label"] == "Preference"
    assert answer["memory"]["text"] == "Mara prefers direct feedback."
    assert await count(client, headers) == 1
    acts = rows_of(database_urls, "SELECT * FROM memory_acts WHERE kind = 'merge'")
    assert [str(act["id"]) for act in acts] == [answer["act_id"]]
    kept = acts[0]["detail"]
    assert kept["rejected"]["text"] == "  mara   PREFERS direct feedback"
    assert kept["rejected"]["label"] == "Behavior"
    assert kept["tier"] == "exact"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The plot measures 10² metres.", "The plot measures 102 metres."),
        ("Room 101 is free.", "Room 102 is free."),
        ("Does Mara like tea?", "Does Mara like tea"),
    ],
    ids=["superscript", "number", "question"],
)
async def test_what_differs_in_meaning_stays_two(
    client: httpx.AsyncClient, tenant: TestTenant, one: str, other: str
) -> None:
    headers = tenant.headers()
    await store(client, headers, one)
    assert (await store(client, headers, other)).json()["outcome"] != "merged"
    assert await count(client, headers) == 2


async def test_dedup_off_stores_whatever_comes(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    await store(client, headers, "Mara likes tea.")
    assert (await store(client, headers, "Mara likes tea.", dedup="off")).json()["outcome"] == "created"
    assert await count(client, headers) == 2


async def test_users_and_readers_are_kept_apart(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    text = "Mara likes tea."
    for headers, fields in (
        (tenant.headers(), {}),
        (tenant.headers(user="mara"), {}),
        (tenant.headers(user="noor"), {}),
        (tenant.headers(user="mara"), {"visibility": "private"}),
        (tenant.headers(user="mara"), {"visibility": "restricted", "readers": {"users": ["noor"], "groups": []}}),
        (tenant.headers(user="mara"), {"visibility": "restricted", "readers": {"users": [], "groups": ["ops"]}}),
    ):
        assert (await store(client, headers, text, **fields)).json()["outcome"] == "created"
        assert (await store(client, headers, text, **fields)).json()["outcome"] == "merged"


async def test_an_event_that_happens_again_is_another_event(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    for day, outcome in (("2026-03-01", "created"), ("2026-03-08", "created"), ("2026-03-08", "merged")):
        fields = {"label": "Event", "occurred_at": f"{day}T18:00:00Z"}
        assert (await store(client, headers, "The choir rehearsed.", **fields)).json()["outcome"] == outcome


async def test_a_merge_bears_out_confidence_and_edges(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    goal = (await store(client, headers, "Mara wants a quiet office.", label="Goal")).json()["memory"]["id"]
    edges = [{"type": "SUPPORTS", "to": goal, "confidence": 0.5}]
    first = (await store(client, headers, "Mara likes silence.", confidence=0.5, edges=edges)).json()["memory"]
    edges = [{"type": "SUPPORTS", "to": goal, "confidence": 0.7}, {"type": "MOTIVATED_BY", "to": goal}]
    again = (await store(client, headers, "Mara likes SILENCE", confidence=0.5, edges=edges)).json()
    assert again["outcome"] == "merged"
    assert again["memory"]["confidence"] == pytest.approx(0.525)
    assert again["memory"]["version"] == 2
    found = rows_of(database_urls, "SELECT * FROM edges WHERE source_memory_id = %s ORDER BY type", first["id"])
    assert [(edge["type"], edge["confidence"], edge["co_reference_count"]) for edge in found] == [
        ("MOTIVATED_BY", 0.5, 0),
        ("SUPPORTS", 0.7, 1),
    ]
    events = rows_of(database_urls, "SELECT * FROM outbox_events WHERE aggregate_id = %s", first["id"])
    assert sorted(event["version"] for event in events) == [1, 2]


async def test_a_batch_is_one_claim_after_another(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers()
    ids = [f"0199aaaa-0000-7000-8000-00000000000{number}" for number in range(4)]
    items = [
        {"id": ids[0], "text": "Mara likes tea.", "label": "Preference"},
        {"id": ids[1], "text": "mara likes tea", "label": "Attribute"},
        {"id": ids[2], "text": "Noor bakes.", "label": "Skill", "edges": [{"type": "SUPPORTS", "to": ids[1]}]},
        {"id": ids[3], "text": "Mara likes tea", "label": "Preference", "dedup": "off"},
    ]
    answer = await client.post(f"{MEMORIES}/batch", json={"items": items}, headers=headers)
    results = answer.json()["results"]
    assert [result["outcome"] for result in results] == ["created", "merged", "created", "created"]
    assert [result["memory_id"] for result in results] == [ids[0], ids[0], ids[2], ids[3]]
    edges = (await client.get("/v1/edges", headers=headers)).json()["items"]
    assert [(edge["from"]["memory"], edge["to"]["memory"]) for edge in edges] == [(ids[2], ids[0])]


async def test_a_named_property_with_a_new_value_is_a_supersession_candidate(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    headers = tenant.headers()
    about = {"label": "Attribute", "subject": "mara", "property": "weight"}
    old = (await store(client, headers, "Mara weighs 178 lbs.", **about)).json()["memory"]
    checked = (
        await client.post(f"{MEMORIES}/check", json={"text": "Mara weighs 182 lbs.", **about}, headers=headers)
    ).json()
    assert (checked["outcome"], checked["rule"]) == ("supersede", "supersession_candidate")
    reported = (await store(client, headers, "Mara weighs 182 lbs.", **about)).json()
    assert (reported["outcome"], reported["rule"]) == ("review", "supersession_candidate")
    assert [(found["id"], found["verdict"]) for found in reported["candidates"]] == [(old["id"], "supersede")]
    assert (await client.get(f"{MEMORIES}/{old['id']}", headers=headers)).json()["status"] == "active"
    reviews = (await client.get("/v1/reviews", headers=headers)).json()["items"]
    assert [(review["kind"], review["memory"]["id"], review["other"]["id"]) for review in reviews] == [
        ("supersession", reported["memory"]["id"], old["id"])
    ]


async def test_a_new_value_takes_the_place_where_the_client_says_so(
    client: httpx.AsyncClient, tenant: TestTenant
) -> None:
    headers = tenant.headers()
    about = {"label": "Attribute", "subject": "mara", "property": "weight", "on_conflict": "supersede"}
    values = {"2026-01-01": 178, "2026-03-01": 182, "2026-02-01": 180}
    ids = {}
    for day, value in values.items():
        answer = await store(client, headers, f"Mara weighs {value} lbs.", valid_from=f"{day}T00:00:00Z", **about)
        ids[day] = answer.json()["memory"]["id"]
    assert answer.json()["outcome"] == "superseded"
    assert answer.json()["memory"]["status"] == "superseded"  # it arrived late, and was true only for a while
    shown = {day: (await client.get(f"{MEMORIES}/{ident}", headers=headers)).json() for day, ident in ids.items()}
    assert [(shown[day]["status"], shown[day]["valid_to"]) for day in sorted(shown)] == [
        ("superseded", "2026-02-01T00:00:00Z"),
        ("superseded", "2026-03-01T00:00:00Z"),
        ("active", None),
    ]
    assert shown["2026-01-01"]["superseded_by"] == ids["2026-02-01"]


async def test_sixteen_clients_with_one_fact_end_with_one_memory(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    headers = tenant.headers(user="mara")
    texts = ["Mara prefers direct feedback" + " " * (number % 4) + "." * (number % 2) for number in range(16)]
    answers = await asyncio.gather(*(store(client, headers, text) for text in texts))
    assert sorted(answer.json()["outcome"] for answer in answers) == ["created", *["merged"] * 15]
    assert await count(client, headers) == 1


async def test_sixteen_users_with_one_fact_have_it_each(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    users = [tenant.headers(user=f"user-{number}") for number in range(16)]
    answers = await asyncio.gather(*(store(client, headers, "The office closes at six.") for headers in users))
    assert {answer.json()["outcome"] for answer in answers} == {"created"}


async def test_sketches_are_those_of_what_may_be_merged_with(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers(user="mara")
    ids = [(await store(client, headers, text)).json()["memory"]["id"] for text in ("Mara skis.", "Noor swims.")]

    def sketched() -> set[str]:
        return {str(row["memory_id"]) for row in rows_of(database_urls, "SELECT * FROM memory_sketches")}

    assert sketched() == set(ids)
    await client.patch(f"{MEMORIES}/{ids[0]}", json={"status": "archived"}, headers=headers)
    assert sketched() == {ids[1]}
    assert (await store(client, headers, "Mara skis.")).json()["outcome"] == "created"
    await client.patch(f"{MEMORIES}/{ids[0]}", json={"status": "active"}, headers=headers)
    assert ids[0] in sketched()
    await client.delete(f"{MEMORIES}/{ids[1]}", headers=headers)
    assert ids[1] not in sketched()


async def test_the_lower_threshold_is_for_the_past_hour(
    client: httpx.AsyncClient, tenant: TestTenant, database_urls: DatabaseUrls
) -> None:
    headers = tenant.headers()
    ident = (await store(client, headers, "Mara likes tea in the garden.")).json()["memory"]["id"]
    body = {"text": "mara likes tea in the garden", "label": "Preference", "subject": "mara"}
    tiers = []
    for age in (timedelta(minutes=59), timedelta(minutes=61)):
        with psycopg.connect(database_urls.owner_url) as connection:
            connection.execute("UPDATE memories SET created_at = %s", (datetime.now(UTC) - age,))
        answer = (await client.post(f"{MEMORIES}/check", json=body, headers=headers)).json()
        assert [found["id"] for found in answer["candidates"]] == [ident]
        tiers.append(answer["candidates"][0]["tier"])
    assert tiers == ["recent", "older"]


@pytest.mark.parametrize("verb", ["delete", "archive"])
@pytest.mark.parametrize(("told", "again"), [("x is 1.", "x is 1"), ("x is 1.", "x is 2.")], ids=["merge", "review"])
async def test_what_goes_while_the_gate_looks_at_it_is_not_merged_with(
    client: httpx.AsyncClient,
    tenant: TestTenant,
    database_urls: DatabaseUrls,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    told: str,
    again: str,
) -> None:
    headers, about = tenant.headers(), {"subject": "mara", "property": "x"}
    await store(client, headers, told, **about)
    decide = Gate.decide

    async def decide_and_lose(*given: Any) -> Any:
        decided = await decide(*given)
        with psycopg.connect(database_urls.owner_url) as connection:
            connection.execute(
                "DELETE FROM memories" if verb == "delete" else "UPDATE memories SET status = 'archived'"
            )
        return decided

    monkeypatch.setattr(Gate, "decide", decide_and_lose)
    answer = await store(client, headers, again, **about)
    assert (answer.status_code, answer.json()["outcome"]) == (201, "created")


async def test_the_key_of_a_disputed_one_stands_in_nobodys_way(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    """A twin that is restored, and one that gets the same words by a change, go without a key."""
    headers = tenant.headers()
    twin = (await store(client, headers, "Mara likes tea.")).json()["memory"]["id"]
    await client.post(f"{MEMORIES}/{twin}/archive", json={}, headers=headers)
    told = (await store(client, headers, "Mara likes tea.")).json()["memory"]["id"]
    other = (await store(client, headers, "Noor bakes.")).json()["memory"]["id"]
    assert (await client.post(f"{MEMORIES}/{told}/dispute", json={}, headers=headers)).status_code == 200
    restored = await client.post(f"{MEMORIES}/{twin}/restore", json={}, headers=headers)
    assert restored.status_code == 200, restored.text
    changed = await client.patch(f"{MEMORIES}/{other}", json={"text": "Mara likes tea."}, headers=headers)
    assert changed.status_code == 200, changed.text
    assert (await client.post(f"{MEMORIES}/{twin}/dispute", json={}, headers=headers)).status_code == 200
