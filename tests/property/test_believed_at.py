"""Random histories of acts: what is believed to have been so at each moment is what memory said at that moment.

The model of a history is plain: after each act every memory is read, and the moment noted. A question about what was
believed then has to be answered with these readings, whatever was done since.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.fixtures.service import TestTenant

pytestmark = pytest.mark.anyio

WORDS: Final = {"vector": False, "graph": False}
TIMES: Final = (None, "2026-01-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00")
ASKED: Final = (None, "2025-06-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00", "2027-06-01T00:00:00+00:00")
LABELS: Final = ("Attribute", "Goal", "Event", "Opportunity")
STEPS: Final = ("complete", "abandon", "archive", "retract", "restore", "dispute")
SHOWN: Final = ("text", "label", "status", "valid_from", "valid_to", "confidence")
IN_FORCE: Final = ("active", "completed", "abandoned", "disputed")

_histories = count(1)
which = st.integers(0, 2)
windows = st.tuples(st.sampled_from(TIMES), st.sampled_from(TIMES))
texts = st.integers(0, 9)

ACTS: Final = st.one_of(
    st.tuples(st.just("store"), st.sampled_from(LABELS), windows, texts),
    st.tuples(st.just("value"), windows, texts),
    st.tuples(st.just("again"), which),
    st.tuples(st.just("change"), which, st.sampled_from(("text", "title", "confidence", "valid_to", "label")), texts),
    st.tuples(st.just("supersede"), which, texts),
    st.tuples(st.just("supersede by"), which, which),
    st.tuples(st.just("step"), st.sampled_from(STEPS), which),
    st.tuples(st.just("dispute"), which, which),
    st.tuples(st.just("correct"), which, st.sampled_from(("replace_text", "wrong_date", "retract")), texts),
    st.tuples(st.just("undo"), which, st.integers(0, 2)),
    st.tuples(st.just("undo"), which, st.just(0)),
    st.tuples(st.just("delete"), which),
)


@dataclass
class History:
    """One history: what is done to the memories that share a word, and what they were after each act."""

    client: httpx.AsyncClient
    tenant: TestTenant
    word: str
    ids: list[str] = field(default_factory=list)
    readings: list[tuple[datetime, dict[str, dict[str, Any]]]] = field(default_factory=list)

    async def post(self, path: str, body: Any = None, role: str = "reviewer") -> dict[str, Any]:
        """What a call answers; one that the state of things does not allow answers nothing."""
        content = {} if body is None else {"json": body}
        answer = await self.client.post(path, headers=self.tenant.headers(role), **content)
        assert answer.status_code < 500, answer.text
        return dict(answer.json()) if answer.is_success else {}

    def pick(self, number: int) -> str | None:
        return self.ids[-1 - number % len(self.ids)] if self.ids else None

    def text(self, number: int) -> str:
        return f"{self.word} number {number}"

    async def store(self, **fields: Any) -> None:
        await self.post("/v1/memories", {"dedup": "off", "label": "Attribute", **fields})

    async def act(self, act: tuple[Any, ...]) -> None:
        """Do one thing, if it can be done."""
        kind, *rest = act
        if kind == "store":
            label, (start, end), number = rest
            await self.store(text=self.text(number), label=label, valid_from=start, valid_to=end)
        elif kind == "value":
            (start, end), number = rest
            claim = {"subject": self.word, "property": "number", "on_conflict": "supersede", "dedup": "gate"}
            await self.store(text=self.text(number), valid_from=start, valid_to=end, **claim)
        elif (ident := self.pick(rest[1] if kind == "step" else rest[0])) is not None:
            await self._act_on(ident, kind, rest)

    async def _act_on(self, ident: str, kind: str, rest: list[Any]) -> None:
        path = f"/v1/memories/{ident}"
        if kind == "again":
            text = self.readings[-1][1].get(ident, {}).get("text", self.text(0))
            await self.post("/v1/memories", {"text": text, "label": "Attribute", "confidence": 0.9})
        elif kind == "change":
            await self._change(path, rest[1], rest[2])
        elif kind == "supersede":
            await self.post(f"{path}/supersede", {"text": self.text(rest[1])})
        elif kind == "supersede by":
            await self.post(f"{path}/supersede", {"by": self.pick(rest[1])})
        elif kind == "step":
            await self.post(f"{path}/{rest[0]}")
        elif kind == "dispute":
            await self.post(f"{path}/dispute", {"against": self.pick(rest[1])})
        elif kind == "correct":
            await self._correct(ident, rest[1], rest[2])
        elif kind == "undo":
            await self._undo(path, rest[1])
        else:
            await self.client.delete(path, headers=self.tenant.headers("reviewer"))

    async def _change(self, path: str, name: str, number: int) -> None:
        values = {"text": self.text(number), "title": f"{self.word} title {number}", "confidence": number / 10}
        values |= {"valid_to": TIMES[number % len(TIMES)], "label": LABELS[number % 2]}
        headers = self.tenant.headers("reviewer")
        answer = await self.client.patch(path, headers=headers, json={name: values[name]})
        assert answer.status_code < 500, answer.text

    async def _correct(self, ident: str, kind: str, number: int) -> None:
        proposals = {"replace_text": {"text": self.text(number)}, "wrong_date": {"valid_from": TIMES[number % 3]}}
        proposal = proposals.get(kind, {})
        body = {"target": ident, "kind": kind, "proposal": proposal, "reason": "It was wrong."}
        made = await self.post("/v1/corrections", body)
        if made:
            ident = made["correction"]["id"]
            await self.post(f"/v1/corrections/{ident}/apply", {})

    async def _undo(self, path: str, number: int) -> None:
        answer = await self.client.get(f"{path}/history", headers=self.tenant.headers("reviewer"))
        if answer.is_success:
            acts = [entry for entry in answer.json()["items"] if entry["kind"] not in ("create", "undo", "change")]
            if acts:
                await self.post(f"{path}/acts/{acts[number % len(acts)]['id']}/undo")

    async def read(self) -> None:
        """Read every memory of this history, and note the moment."""
        answer = await self.client.get("/v1/memories", headers=self.tenant.headers(), params={"limit": 200})
        assert answer.status_code == 200, answer.text
        mine = [memory for memory in answer.json()["items"] if memory["text"].startswith(f"{self.word} ")]
        self.ids = sorted(memory["id"] for memory in mine)
        self.readings.append((datetime.now(UTC), {memory["id"]: memory for memory in mine}))

    async def believed(self, moment: datetime, as_of: str | None, *, history: bool) -> dict[str, dict[str, Any]]:
        """What memory says today that it believed then."""
        body = {"query": self.word, "arms": WORDS, "believed_at": moment.isoformat(), "budget_tokens": 32_000}
        body |= {"limits": {"memories": 50}, "include": ["history"] if history else []}
        if as_of is not None:
            body["as_of"] = as_of
        pack = await self.post("/v1/retrieve", body, "reader")
        return {item["id"]: item for item in pack["items"]}

    def expected(self, reading: int, as_of: str | None, *, history: bool) -> dict[str, dict[str, Any]]:
        """What the model says: the readings of then, of what is there still, in force at the time asked about."""
        moment, memories = self.readings[reading]
        asked = moment if as_of is None else datetime.fromisoformat(as_of)
        there = self.readings[-1][1].keys()
        return {
            ident: memory
            for ident, memory in memories.items()
            if ident in there and holds(memory, asked, history=history)
        }


def holds(memory: dict[str, Any], asked: datetime, *, history: bool) -> bool:
    start, end = (moment and datetime.fromisoformat(moment) for moment in (memory["valid_from"], memory["valid_to"]))
    if start is not None and start > asked:
        return False
    if history:
        return True
    if memory["status"] in IN_FORCE:
        return end is None or end > asked
    return memory["status"] in ("superseded", "expired") and end is not None and end > asked


def shown(records: dict[str, dict[str, Any]], *, there: set[str]) -> dict[str, dict[str, Any]]:
    """What is compared of records; a successor that was deleted since is no longer named."""
    return {
        ident: {name: record.get(name) for name in SHOWN}
        | {"superseded_by": by if (by := record.get("superseded_by")) in there else None}
        for ident, record in records.items()
    }


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(acts=st.lists(ACTS, min_size=3, max_size=12))
@example(acts=[("supersede by", 0, 1), ("delete", 0)])  # what began when it took the place of one that is gone
async def test_what_was_believed_is_what_memory_said_then(
    client: httpx.AsyncClient, tenant: TestTenant, acts: list[tuple[Any, ...]]
) -> None:
    history = History(client, tenant, f"zephyr{next(_histories)}x")
    for number in range(2):
        await history.store(text=history.text(number), label=LABELS[number])
    await history.read()
    for act in acts:
        await history.act(act)
        await history.read()
    there = set(history.ids)
    for number, (moment, _) in enumerate(history.readings):
        for as_of, past in ((None, number % 2 == 0), (ASKED[number % len(ASKED)], number % 3 == 0)):
            wanted = shown(history.expected(number, as_of, history=past), there=there)
            found = shown(await history.believed(moment, as_of, history=past), there=there)
            assert found == wanted, (number, as_of, past)
