"""Hand-checked questions: do the right records come back, with the right source, by the path that was written down?

The world and the questions lie in `path_eval/`, with what is expected of each; they were written before the first run.
Every question is asked with all arms, and for comparison with each arm alone.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx
import psycopg
from stack import Stores, parser, report, service, stores, wait_until

FOLDER = Path(__file__).with_name("path_eval")
ARMS = ("vector", "text", "graph")

Json = dict[str, Any]


@dataclass
class World:
    """What was stored, by the keys of `world.json`."""

    client: httpx.Client
    ids: dict[str, str] = field(default_factory=dict)

    def build(self, steps: list[Json]) -> None:
        """Make every step's call.

        Raises:
            RuntimeError: If one is refused.
        """
        for step in steps:
            method, path = self._known(step["call"]).split(" ", 1)
            body = self._known(step.get("body", {}))
            ident = self._id_of(step, path)
            if ident is not None:
                body["id"] = ident
            answer = self.client.request(method, path, json=body, headers=acting_as(step.get("as")))
            if answer.status_code not in (200, 201):
                raise RuntimeError(f"{step['call']} {step.get('key', '')}: {answer.status_code} {answer.text}")
            self._remember(step, answer.json())

    def key_of(self, ident: str) -> str:
        """The key of a record, or its id where no step named it."""
        return next((key for key, known in self.ids.items() if known == ident), ident)

    def _id_of(self, step: Json, path: str) -> str | None:
        """The id that a step's record is given; a correction gets its own."""
        if "key" not in step or path.startswith("/v1/corrections"):
            return None
        return self.ids.setdefault(step["key"], made_id(step["key"]))

    def _remember(self, step: Json, answer: Json) -> None:
        if step["call"] == "POST /v1/corrections":
            self.ids[step["key"]] = answer["correction"]["id"]
        if "result" in step:
            self.ids[step["result"]] = answer["correction"]["result_id"]

    def _known(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """A value with its `@key` texts as ids; one that no step has named yet gets its id here."""
        if isinstance(value, dict):
            return {name: self._known(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self._known(part) for part in value]
        if not isinstance(value, str) or "@" not in value:
            return value
        head, _, rest = value.partition("@")
        key, slash, tail = rest.partition("/")
        return f"{head}{self.ids.setdefault(key, made_id(key))}{slash}{tail}"


def made_id(key: str) -> str:
    """An id that is the same in every run."""
    return str(uuid5(NAMESPACE_URL, f"memory-os:path-eval:{key}"))


def acting_as(user: str | None) -> dict[str, str]:
    """The headers of a call for a user."""
    return {} if user is None else {"X-Memory-User": user}


def ask(world: World, question: Json, arms: dict[str, bool]) -> Json:
    """The pack for a question, with the keys of its records."""
    body = {name: question[name] for name in ("query", "as_of", "include") if name in question}
    body |= {"arms": arms, "budget_tokens": 4000, "limits": {"memories": 12}}
    answer = world.client.post("/v1/retrieve", json=body, headers=acting_as(question.get("as")))
    answer.raise_for_status()
    pack: Json = answer.json()
    pack["keys"] = [world.key_of(item["id"]) for item in pack["items"]]
    return pack


def faults_of(world: World, question: Json, pack: Json) -> list[str]:
    """What differs from what was written down, in words."""
    keys = pack["keys"]
    first = keys[: question["within"]]
    items = dict(zip(keys, pack["items"], strict=True))
    faults = [f"{key} is not among the first {question['within']}" for key in question["expected"] if key not in first]
    gone = question.get("absent", ())
    known = {world.key_of(one.get("id", "")) for one in pack["omitted"]}
    faults += [f"{key} is shown" for key in gone if key in items or key in known]
    for key, source in question.get("source", {}).items():
        found = world.key_of(items.get(key, {}).get("source", {}).get("id", "none"))
        if found != source:
            faults.append(f"{key} comes from {found}, not from {source}")
    for key, path in question.get("path", {}).items():
        taken = [[world.key_of(node["id"]), node.get("via")] for node in items.get(key, {}).get("path", ())]
        if taken != path:
            faults.append(f"{key} was reached by {taken}, not by {path}")
    for key, newer in question.get("superseded_by", {}).items():
        if world.key_of(items.get(key, {}).get("superseded_by") or "none") != newer:
            faults.append(f"{key} does not say that {newer} took its place")
    for pair in question.get("conflict", ()):
        conflicts = [sorted(world.key_of(ident) for ident in one["items"]) for one in pack["conflicts"]]
        if sorted(pair) not in conflicts:
            faults.append(f"the conflict of {' and '.join(pair)} is not told")
    for earlier, later in question.get("before", ()):
        if earlier not in keys or (later in keys and keys.index(later) < keys.index(earlier)):
            faults.append(f"{later} comes before {earlier}")
    return faults


def found(question: Json, pack: Json) -> bool:
    """Whether all expected records are among the first ones, whatever their paths."""
    return set(question["expected"]) <= set(pack["keys"][: question["within"]])


def settled(on: Stores) -> bool:
    """Whether the graph has everything, and every text its vector."""
    with psycopg.connect(on.owner_url) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM outbox_events WHERE status <> 'done') "
            "+ (SELECT count(*) FROM memories WHERE embedding_model IS NULL) "
            "+ (SELECT count(*) FROM passages WHERE embedding_model IS NULL)"
        ).fetchone()
    return row == (0,)


def evaluate(world: World, questions: list[Json]) -> Json:
    """Ask everything, print what differs, and give the figures."""
    every = dict.fromkeys(ARMS, True)
    outcomes = []
    for question in questions:
        faults = faults_of(world, question, ask(world, question, every))
        outcomes.append({"id": question["id"], "kind": question["kind"], "faults": faults})
        print(
            f"{'ok  ' if not faults else 'BAD '} {question['id']}: {'; '.join(faults) or question['query']}", flush=True
        )
    alone = {
        arm: sum(
            found(question, ask(world, question, {**dict.fromkeys(ARMS, False), arm: True})) for question in questions
        )
        for arm in ARMS
    }
    return {
        "questions": len(questions),
        "as_written_down": sum(not outcome["faults"] for outcome in outcomes),
        "all_records_found": sum(found(question, ask(world, question, every)) for question in questions),
        "all_records_found_by_one_arm": alone,
        "outcomes": outcomes,
    }


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/path_eval.py")
    options.parse_args()
    steps = json.loads((FOLDER / "world.json").read_text())["steps"]
    questions = json.loads((FOLDER / "questions.json").read_text())["questions"]
    with stores() as on, service(on, workers=1, EMBEDDING_PROVIDER="bundled") as address:
        headers = {"Authorization": f"Bearer {on.token}"}
        with httpx.Client(base_url=address, headers=headers, timeout=30) as client:
            world = World(client)
            started = time.perf_counter()
            world.build(steps)
            wait_until(lambda: settled(on), 120, "the projection")
            print(f"the world is stored and projected after {time.perf_counter() - started:.1f} s", flush=True)
            report("path_eval", evaluate(world, questions))


if __name__ == "__main__":
    main()
