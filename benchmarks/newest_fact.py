"""Contradicting updates: of a fact that has changed, does the newest come first, and the old not at all?

Chains of facts about people and things are made from `newest_fact/chains.json` (the same ones for the same seed) and
stored through the gate with `on_conflict: supersede`, mixed with each other and with other facts about the same
subjects. Then each property is asked for once. Pairs of `dedup_dev.jsonl` in the folder `--data` that are labelled
`supersede` or `contradict` are stored in the same way, and asked for by the words that both texts share.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final

import httpx
from path_eval import settled
from stack import Stores, parser, report, service, stores, wait_until

from memory_os.domain.search_text import search_text

TEMPLATES = Path(__file__).with_name("newest_fact") / "chains.json"
WORDINGS = ("plain", "now", "reworded")
BATCH = 50
DEPTH = 10
"""Records that an answer may hold; with history twice as many, since a chain has up to four facts."""
STRUCTURED = 0.25
"""The share of chains whose facts name their subject and property, as a careful client would."""
RETURNING = 0.1
"""The share of chains that end at the value that they began with."""
QUOTED = 25
"""Misses that the report quotes."""
PAIRS = "dedup_dev"
CHANGES = ("supersede", "contradict")
IMMUTABLE = "Event"
ALONE: Final = {"text": {"vector": False, "graph": False}, "vector": {"text": False, "graph": False}}
Json = dict[str, Any]


@dataclass(slots=True)
class Fact:
    """One statement of a chain, how it is worded, the id that it is stored under, and what the gate said."""

    text: str
    wording: str
    ident: str = ""
    outcome: str = ""
    rule: str = ""


@dataclass(slots=True)
class Chain:
    """The facts of one property of one subject, oldest first, and the question for it."""

    attribute: str
    label: str
    subject: str
    structured: bool
    facts: list[Fact]
    question: str
    asked_as: str

    @property
    def newest(self) -> Fact:
        """What holds at the end."""
        return self.facts[-1]

    def drafts(self) -> list[Json]:
        """Its facts as they are stored."""
        named = {"subject": self.subject, "property": self.attribute} if self.structured else {}
        return [draft_of(fact.text, self.label) | named for fact in self.facts]


@dataclass(slots=True)
class Tally:
    """What came of asking for each chain once.

    Attributes:
        newest_first: Of the chain's facts that came, the newest was the first.
        newest_on_top: It was the first of all records.
        old_shown: One of the older facts was shown.
    """

    questions: int = 0
    newest_first: int = 0
    newest_on_top: int = 0
    newest_found: int = 0
    old_shown: int = 0
    misses: list[Json] = field(default_factory=list)

    def add(self, chain: Chain, pack: Json) -> None:
        """Count one answer."""
        ids = [item["id"] for item in pack["items"]]
        old = {fact.ident for fact in chain.facts[:-1]}
        facts = {fact.ident for fact in chain.facts}
        on_top = ids[:1] == [chain.newest.ident]
        first = next((ident for ident in ids if ident in facts), None) == chain.newest.ident
        self.questions += 1
        self.newest_first += first
        self.newest_on_top += on_top
        self.newest_found += chain.newest.ident in ids
        self.old_shown += bool(old & set(ids))
        if not on_top or old & set(ids):
            texts = [item["text"] for item in pack["items"][:3]]
            told = [f"{fact.text} [{fact.outcome} {fact.rule}]" for fact in chain.facts]
            self.misses.append({"question": chain.question, "facts": told, "first": texts})

    def figures(self) -> Json:
        """Shares of the questions."""
        return {
            "questions": self.questions,
            "newest_first": share(self.newest_first, self.questions),
            "newest_on_top": share(self.newest_on_top, self.questions),
            "newest_found": share(self.newest_found, self.questions),
            "old_shown": share(self.old_shown, self.questions),
        }


def share(part: int, whole: int) -> float:
    """A share with three decimals; 0 of nothing is 0."""
    return round(part / whole, 3) if whole else 0.0


def draft_of(text: str, label: str) -> Json:
    """A memory to store."""
    return {"text": text, "label": label, "on_conflict": "supersede"}


def make_chains(seed: int) -> tuple[list[Chain], list[Json]]:
    """All chains, and the facts beside them that never change."""
    known = json.loads(TEMPLATES.read_text())
    source = random.Random(seed)
    of_kind: defaultdict[str, list[Json]] = defaultdict(list)
    for attribute in known["attributes"]:
        of_kind[attribute["of"]].append(attribute)
    chains: list[Chain] = []
    beside: list[Json] = []
    for kind, parts in known["subjects"].items():
        for subject in (f"{first} {second}" for first in parts["first"] for second in parts["second"]):
            chains += [_make_chain(source, subject, chosen) for chosen in source.sample(of_kind[kind], k=2)]
            said = source.sample(known["beside"][kind], k=2)
            beside += [draft_of(_sentence(text, s=subject), "Attribute") for text in said]
    return chains, beside


def _make_chain(source: random.Random, subject: str, attribute: Json) -> Chain:
    values = source.sample(attribute["values"], k=source.randint(2, 4))
    if len(values) > 2 and source.random() < RETURNING:
        values[-1] = values[0]
    facts = [Fact(_sentence(attribute["plain"], s=subject, v=values[0]), "first")]
    for old, value in pairwise(values):
        wording = source.choice(WORDINGS)
        facts.append(Fact(_sentence(attribute[wording], s=subject, v=value, old=old), wording))
    asked_as = source.choice(("question", "other_words"))
    question = attribute[asked_as].format(
        s=subject[:1].lower() + subject[1:] if subject.startswith("The ") else subject
    )
    structured = source.random() < STRUCTURED
    return Chain(attribute["name"], attribute["label"], subject, structured, facts, question, asked_as)


def _sentence(template: str, **parts: str) -> str:
    """A filled template as a sentence of its own; articles within it are written small."""
    text = template.format(**parts).replace(" The ", " the ")
    return text[:1].upper() + text[1:]


def store_all(client: httpx.Client, chains: Sequence[Chain], beside: Sequence[Json], seed: int) -> None:
    """Store everything in a random order in which each chain's facts keep theirs, and note what the gate said.

    A fact that merged is known by the memory that was kept.
    """
    turns = [number for number, chain in enumerate(chains) for _ in chain.facts] + [-1] * len(beside)
    random.Random(seed).shuffle(turns)
    drafts = [iter(chain.drafts()) for chain in chains] + [iter(beside)]
    facts = [iter(chain.facts) for chain in chains]
    for turn, result in zip(turns, store(client, (next(drafts[turn]) for turn in turns)), strict=True):
        if turn >= 0:
            fact = next(facts[turn])
            fact.outcome, fact.rule, fact.ident = result["outcome"], result.get("rule") or "", result["memory_id"]


def store(client: httpx.Client, drafts: Iterable[Json], user: str | None = None) -> list[Json]:
    """Store drafts in batches; gives their outcomes in order.

    Raises:
        RuntimeError: If one is refused.
    """
    outcomes: list[Json] = []
    coming = iter(drafts)
    while items := list(islice(coming, BATCH)):
        answer = client.post("/v1/memories/batch", json={"items": items}, headers=acting_as(user))
        answer.raise_for_status()
        outcomes += answer.json()["results"]
    refused = [outcome for outcome in outcomes if outcome.get("error")]
    if refused:
        raise RuntimeError(f"refused: {refused}")
    return outcomes


def acting_as(user: str | None) -> dict[str, str]:
    """The headers of a call for a user."""
    return {} if user is None else {"X-Memory-User": user}


def gate_figures(chains: Sequence[Chain]) -> Json:
    """What the gate made of the updates: by wording, by property, and those that took no place."""
    by: defaultdict[str, Counter[str]] = defaultdict(Counter)
    failed: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for chain in chains:
        for before, fact in pairwise(chain.facts):
            keys = ("all", fact.wording, chain.attribute, "structured" if chain.structured else "text alone")
            for key in keys:
                by[key][fact.outcome] += 1
            if fact.outcome != "superseded":
                sort = f"{chain.attribute}, {fact.wording}: {fact.outcome} {fact.rule}".strip()
                failed[sort] += 1
                examples.setdefault(sort, f"{before.text} / {fact.text}")
    most = failed.most_common()
    return {
        "superseded": {key: share(counts["superseded"], counts.total()) for key, counts in by.items()},
        "updates": by["all"].total(),
        "took_no_place": [{"sort": sort, "count": count, "example": examples[sort]} for sort, count in most],
    }


def ask(client: httpx.Client, query: str, *, history: bool = False, alone: str = "", user: str | None = None) -> Json:
    """The pack for a question."""
    depth = 2 * DEPTH if history else DEPTH
    body: Json = {"query": query, "limits": {"memories": depth}, "budget_tokens": 32_000}
    if history:
        body["include"] = ["history"]
    if alone:
        body["arms"] = ALONE[alone]
    answer = client.post("/v1/retrieve", json=body, headers=acting_as(user))
    answer.raise_for_status()
    return dict(answer.json())


def ask_all(client: httpx.Client, chains: Sequence[Chain]) -> Json:
    """Ask for each chain with all arms, with single arms, and with history, where nothing that is old is left out."""
    figures: Json = {}
    print(f"\n{'answered by':<28} newest first   newest on top   newest found   old shown", flush=True)
    for name, history, alone in (
        ("all arms", False, ""),
        ("text alone", False, "text"),
        ("vector alone", False, "vector"),
        ("all arms, with history", True, ""),
        ("text alone, with history", True, "text"),
        ("vector alone, with history", True, "vector"),
    ):
        tally, labelled = Tally(), 0
        by_kind: defaultdict[str, Tally] = defaultdict(Tally)
        for chain in chains:
            pack = ask(client, chain.question, history=history, alone=alone)
            for one in (tally, by_kind[chain.asked_as], by_kind[chain.attribute]):
                one.add(chain, pack)
            labelled += is_labelled(chain, pack)
        told = figures[name] = tally.figures()
        if history:
            told["old_present_and_labelled"] = share(labelled, tally.questions)
        elif not alone:
            told["newest_first_by"] = {key: one.figures()["newest_first"] for key, one in by_kind.items()}
            told["newest_on_top_by"] = {key: one.figures()["newest_on_top"] for key, one in by_kind.items()}
            told["misses"] = tally.misses[:QUOTED]
        shares = [told[key] for key in ("newest_first", "newest_on_top", "newest_found", "old_shown")]
        print(f"{name:<28} {'   '.join(f'{value:>12.1%}' for value in shares)}", flush=True)
    return figures


def is_labelled(chain: Chain, pack: Json) -> bool:
    """Whether every old fact is there, marked as superseded, and names the one that took its place."""
    items = {item["id"]: item for item in pack["items"]}
    return all(
        items.get(old.ident, {}).get("status") == "superseded" and items[old.ident].get("superseded_by") == newer.ident
        for old, newer in pairwise(chain.facts)
    )


@dataclass(slots=True)
class Pair:
    """A labelled pair: the verdict and kind, the two texts with their labels, and aliases to declare first."""

    ident: str
    verdict: str
    kind: str
    older: Json
    newer: Json
    aliases: dict[str, list[str]]

    @property
    def query(self) -> str:
        """The words that both texts share, in the order of the first; all of these where they share none."""
        words = search_text(self.older["text"]).split()
        shared = set(search_text(self.newer["text"]).split())
        return " ".join([word for word in words if word in shared] or words)


def read_pairs(folder: Path) -> list[Pair]:
    """The pairs that speak of a change; none, with a line that says so, where the file is not there."""
    path = folder / f"{PAIRS}.jsonl"
    if not path.exists():
        print(
            f"{path} is not there, so the labelled pairs are left out: they are kept outside the repository; "
            "give their folder as --data",
            file=sys.stderr,
        )
        return []
    beside = folder / f"{PAIRS}_aliases.json"
    aliases = json.loads(beside.read_text()) if beside.exists() else {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        Pair(
            row["id"],
            row["verdict"],
            row["kind"],
            draft_of(row["a"], row["label_a"]) | {"visibility": "private"},
            draft_of(row["b"], row["label_b"]) | {"visibility": "private"},
            row.get("aliases") or aliases.get(row["id"], {}),
        )
        for row in rows
        if row["verdict"] in CHANGES
    ]


def ask_pairs(client: httpx.Client, pairs: Sequence[Pair], on: Stores) -> Json:
    """Store each pair as a user of its own, and see what comes first and whether the older one is shown."""
    outcomes: list[list[Json]] = []
    for pair in pairs:
        for name, others in pair.aliases.items():
            body = {"name": name, "entity_type": "other", "aliases": others}
            client.post("/v1/memory/entities", json=body).raise_for_status()
        outcomes.append([store(client, [draft], user=pair.ident)[0] for draft in (pair.older, pair.newer)])
    wait_until(lambda: settled(on), 300, "the projection")
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    failed = []
    for pair, (older, newer) in zip(pairs, outcomes, strict=True):
        happened = IMMUTABLE in (pair.older["label"], pair.newer["label"])
        sort = "happened, and never superseded" if happened else pair.verdict
        ids = [item["id"] for item in ask(client, pair.query, user=pair.ident)["items"]]
        counts[sort].update(
            pairs=1,
            superseded=newer["outcome"] == "superseded",
            newest_first=ids[:1] == [newer["memory_id"]],
            old_shown=older["memory_id"] in ids,
        )
        if newer["outcome"] != "superseded" and not happened:
            outcome = f"{newer['outcome']} {newer.get('rule')}"
            failed.append({"pair": pair.ident, "kind": pair.kind, "outcome": outcome})
    return {"by_verdict": {sort: dict(figures) for sort, figures in counts.items()}, "took_no_place": failed}


def measure(embedder: str, data: Path, seed: int) -> Json:
    """Store everything on stores of its own, ask, and give the figures."""
    chains, beside = make_chains(seed)
    pairs = read_pairs(data)
    with (
        stores() as on,
        service(on, workers=1, EMBEDDING_PROVIDER=embedder) as address,
        httpx.Client(base_url=address, headers={"Authorization": f"Bearer {on.token}"}, timeout=120) as client,
    ):
        started = time.perf_counter()
        store_all(client, chains, beside, seed)
        wait_until(lambda: settled(on), 300, "the projection")
        count = sum(len(chain.facts) for chain in chains) + len(beside)
        print(f"{count} memories stored after {time.perf_counter() - started:.0f} s", flush=True)
        gate = gate_figures(chains)
        print(f"superseded by the gate: {gate['superseded']}", flush=True)
        return {
            "embedder": embedder,
            "seed": seed,
            "chains": len(chains),
            "memories": count,
            "gate": gate,
            "answers": ask_all(client, chains),
            "pairs": ask_pairs(client, pairs, on) if pairs else f"left out: {data / PAIRS}.jsonl is not there",
        }


def options_of(arguments: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line."""
    arguments.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of dedup_dev.jsonl")
    arguments.add_argument("--embedder", choices=("bundled", "deterministic-for-tests"), default="bundled")
    arguments.add_argument("--seed", type=int, default=7)
    return arguments.parse_args()


def main() -> None:
    """Run it."""
    options = options_of(parser(__doc__ or "", "python benchmarks/newest_fact.py --data ../shared/data"))
    report("newest_fact", measure(options.embedder, options.data, options.seed))


if __name__ == "__main__":
    main()
