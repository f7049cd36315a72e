"""Hand-checked questions: do the right records come back, with the right source, by the path that was written down?

The world and the questions lie in `path_eval/`, with what is expected of each; they were written before the first run.
Every question is asked with all arms, and for comparison with each arm alone and without each.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx
import psycopg
from stack import Stores, parser, report, service, stores, wait_until

FOLDER = Path(__file__).with_name("path_eval")
ARMS = ("vector", "text", "graph")
SHOWN = 6
"""Records that a miss lists of what came instead."""

Json = dict[str, Any]
Faults = list[tuple[str, str]]
"""What differs: the sort of the fault, and the fault in words."""


@dataclass
class World:
    """What was stored, by the keys of `world.json`."""

    client: httpx.Client
    ids: dict[str, str] = field(default_factory=dict)

    def build(self, steps: list[Json]) -> None:
        """Make every step's call.

        Raises:
            RuntimeError: If one is refused, or merged with what is there.
        """
        for step in steps:
            method, path = self._known(step["call"]).split(" ", 1)
            body = self._known(step.get("body", {}))
            ident = self._id_of(step, path)
            if ident is not None:
                body["id"] = ident
            answer = self.client.request(method, path, json=body, headers=acting_as(step))
            told = answer.json() if answer.content else {}
            outcomes = [told, *told.get("results", ())]
            if not answer.is_success or any(one.get("outcome") == "merged" or one.get("error") for one in outcomes):
                raise RuntimeError(f"{step['call']} {step.get('key', '')}: {answer.status_code} {answer.text}")
            self._remember(step, told)

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
        if not isinstance(value, str) or not (value.startswith("@") or "/@" in value):
            return value
        head, _, rest = value.partition("@")
        key, slash, tail = rest.partition("/")
        return f"{head}{self.ids.setdefault(key, made_id(key))}{slash}{tail}"


def made_id(key: str) -> str:
    """An id that is the same in every run."""
    return str(uuid5(NAMESPACE_URL, f"memory-os:path-eval:{key}"))


def acting_as(step: Json) -> dict[str, str]:
    """The headers of a call for the user and groups that a step or question names."""
    names = {"as": "X-Memory-User", "groups": "X-Memory-Groups"}
    return {header: step[name] for name, header in names.items() if name in step}


def ask(world: World, question: Json, arms: Iterable[str] = ARMS) -> Json:
    """The pack for a question, with the keys of its records."""
    body: Json = {name: question[name] for name in ("query", "as_of", "include") if name in question}
    wanted = set(arms)
    body |= {"arms": {arm: arm in wanted for arm in ARMS}, "budget_tokens": 4000, "limits": {"memories": 12}}
    answer = world.client.post("/v1/retrieve", json=body, headers=acting_as(question))
    answer.raise_for_status()
    pack: Json = answer.json()
    pack["keys"] = [world.key_of(item["id"]) for item in pack["items"]]
    return pack


def faults_of(world: World, question: Json, pack: Json) -> Faults:
    """What differs from what was written down."""
    items = dict(zip(pack["keys"], pack["items"], strict=True))
    return [
        *_missing(question, pack),
        *(("forbidden", f"{key} is shown") for key in shown(world, question.get("absent", ()), pack)),
        *(("stale", f"{key} is shown") for key in shown(world, question.get("stale", ()), pack)),
        *_wrong_paths(world, question, items),
        *_wrong_labels(world, question, items),
        *_wrong_order(question, pack["keys"]),
        *_untold(world, question, pack),
    ]


def shown(world: World, keys: Sequence[str], pack: Json) -> list[str]:
    """Which of these records the pack betrays: by an item, a step of a path, a source, or what it omitted."""
    known = {world.key_of(one.get("id", "")) for one in pack["omitted"]} | set(pack["keys"])
    for item in pack["items"]:
        known |= {world.key_of(node["id"]) for node in item.get("path", ())}
        known.add(world.key_of(item.get("source", {}).get("id", "")))
    return [key for key in keys if key in known]


def found(question: Json, pack: Json) -> bool:
    """Whether all expected records are among the first ones, whatever their paths."""
    return not _missing(question, pack)


def _missing(question: Json, pack: Json) -> Faults:
    first = pack["keys"][: question["within"]]
    return [
        ("missing", f"{key} is not among the first {question['within']}")
        for key in question["expected"]
        if key not in first
    ]


def _wrong_paths(world: World, question: Json, items: Json) -> Faults:
    faults = []
    for key, path in question.get("path", {}).items():
        nodes = items.get(key, {}).get("path", ())
        taken = [[world.key_of(node["id"]), node.get("via"), "back" * bool(node.get("against"))] for node in nodes]
        wanted = [[step[0], step[1], *(step[2:] or ([] if index == 0 else ["?"]))] for index, step in enumerate(path)]
        if not _same_path(taken, wanted):
            faults.append(("path", f"{key} was reached by {_in_words(taken)}, not by {_in_words(path)}"))
    return faults


def _same_path(taken: Sequence[Sequence[Any]], wanted: Sequence[Sequence[Any]]) -> bool:
    """Whether the steps are those that were written down; a direction counts where one was written."""
    return len(taken) == len(wanted) and all(
        list(one[:2]) == list(other[:2]) and ("back" not in other or one[2] == "back")
        for one, other in zip(taken, wanted, strict=True)
    )


def _in_words(path: Sequence[Sequence[Any]]) -> str:
    return " ".join(f"-{step[1]}-> {step[0]}" if step[1] else str(step[0]) for step in path) or "no path"


def _wrong_labels(world: World, question: Json, items: Json) -> Faults:
    """Sources, quotes, statuses and replacements that are not told as they should be."""
    faults: Faults = []
    for key, source in question.get("source", {}).items():
        told = world.key_of(items.get(key, {}).get("source", {}).get("id", "none"))
        if told != source:
            faults.append(("source", f"{key} comes from {told}, not from {source}"))
    for key, quote in question.get("quote", {}).items():
        if quote not in items.get(key, {}).get("source", {}).get("quote", ""):
            faults.append(("source", f"{key} does not quote {quote!r}"))
    for key, status in question.get("status", {}).items():
        told = items.get(key, {}).get("status")
        if told != status:
            faults.append(("label", f"{key} is shown as {told}, not as {status}"))
    for key, newer in question.get("superseded_by", {}).items():
        if world.key_of(items.get(key, {}).get("superseded_by") or "none") != newer:
            faults.append(("label", f"{key} does not say that {newer} took its place"))
    return faults


def _wrong_order(question: Json, keys: Sequence[str]) -> Faults:
    faults = [
        ("order", f"{later} comes before {earlier}")
        for earlier, later in question.get("before", ())
        if earlier not in keys or (later in keys and keys.index(later) < keys.index(earlier))
    ]
    for begin, most in question.get("crowd", {}).items():
        count = sum(key.startswith(begin) for key in keys)
        if count > most:
            faults.append(("crowd", f"{count} records {begin}* instead of at most {most}"))
    return faults


def _untold(world: World, question: Json, pack: Json) -> Faults:
    conflicts = [sorted(world.key_of(ident) for ident in one["items"]) for one in pack["conflicts"]]
    faults = [
        ("label", f"the conflict of {' and '.join(pair)} is not told")
        for pair in question.get("conflict", ())
        if sorted(pair) not in conflicts
    ]
    if question.get("no_match") and not pack["no_match"]:
        faults.append(("no_match", f"{len(pack['keys'])} records come where there is nothing: {pack['keys'][:SHOWN]}"))
    return faults


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
    outcomes = []
    for question in questions:
        pack = ask(world, question)
        faults = faults_of(world, question, pack)
        outcomes.append({"question": question, "sorts": {sort for sort, _ in faults}})
        if faults:
            words = [fault for _, fault in faults]
            outcomes[-1]["miss"] = {
                "id": question["id"],
                "query": question["query"],
                "faults": words,
                "first": pack["keys"][:SHOWN],
            }
            print(f"MISS {question['id']}: {'; '.join(words)}", flush=True)
    table_of_kinds(outcomes)
    return {
        "questions": len(questions),
        "as_written_down": share(outcomes, set(), None),
        "expected_found": share(outcomes, {"missing"}, "expected"),
        "forbidden_absent": share(outcomes, {"forbidden", "stale"}, "absent", "stale"),
        "path_as_written": share(outcomes, {"path"}, "path"),
        "source_as_written": share(outcomes, {"source"}, "source"),
        "labelled_as_written": share(outcomes, {"label"}, "status", "superseded_by", "conflict"),
        "nothing_where_there_is_nothing": share(outcomes, {"no_match"}, "no_match"),
        "stale_fact_rate": rate_of_stale(outcomes),
        "by_arms": by_arms(world, questions),
        "misses": [outcome["miss"] for outcome in outcomes if "miss" in outcome],
    }


def share(outcomes: list[Json], sorts: set[str], *fields: str | None) -> str:
    """Of the questions that have one of these fields, how many show no fault of these sorts (none named: no fault)."""
    asked = [one for one in outcomes if None in fields or any(one["question"].get(name) for name in fields if name)]
    right = [one for one in asked if not (one["sorts"] & sorts if sorts else one["sorts"])]
    return f"{len(right)} of {len(asked)} ({100 * len(right) / len(asked):.1f} %)"


def rate_of_stale(outcomes: list[Json]) -> float:
    """The share of the questions with a stale fact to be kept out that show one."""
    asked = [one for one in outcomes if one["question"].get("stale")]
    return round(sum("stale" in one["sorts"] for one in asked) / len(asked), 4)


def by_arms(world: World, questions: list[Json]) -> dict[str, Json]:
    """How many questions find all that is expected, and show what must not be: all arms, each alone, without each."""
    choices: dict[str, tuple[str, ...]] = {"all": ARMS}
    choices |= {f"{arm} alone": (arm,) for arm in ARMS}
    choices |= {f"without {arm}": tuple(other for other in ARMS if other != arm) for arm in ARMS}
    wanted = [question for question in questions if question["expected"]]
    figures = {}
    print(f"\n{'arms':<16} found of {len(wanted)}   first of {len(wanted)}   forbidden shown", flush=True)
    for name, arms in choices.items():
        packs = [(question, ask(world, question, arms)) for question in questions]
        hidden = [
            shown(world, [*question.get("absent", ()), *question.get("stale", ())], pack) for question, pack in packs
        ]
        figures[name] = {
            "expected_found": sum(found(question, pack) for question, pack in packs if question["expected"]),
            "an_expected_one_first": sum(
                key in question["expected"] for question, pack in packs for key in pack["keys"][:1]
            ),
            "forbidden_shown": sum(map(bool, hidden)),
        }
        print(f"{name:<16} {'   '.join(f'{count:>11}' for count in figures[name].values())}", flush=True)
    return figures


def table_of_kinds(outcomes: list[Json]) -> None:
    """Print how many questions of each kind came out as written down."""
    kinds: defaultdict[str, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        kinds[outcome["question"]["kind"]].append(not outcome["sorts"])
    print(f"\n{'kind':<44} as written down", flush=True)
    for kind, right in kinds.items():
        print(f"{kind:<44} {sum(right):>3} of {len(right)}", flush=True)


def measure() -> Json:
    """Store the world on stores of its own, ask everything, and give the figures."""
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
            return evaluate(world, questions)


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/path_eval.py")
    options.parse_args()
    report("path_eval", measure())


if __name__ == "__main__":
    main()
