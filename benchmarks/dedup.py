"""The dedup gate on labelled pairs: what merges, what goes to review, what is named, and the embedder's thresholds.

Embeds each pair with the embedder that the settings name (the bundled one where they name none), sweeps the thresholds,
picks the pair for `src/memory_os/domain/gate/thresholds.py`, and prints figures by kind of pair. `raw` shows what the
similarity alone would do at the same threshold.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from stack import parser, report

from memory_os.domain.gate.judging import Aliases, Judgement, Statement, Thresholds, judge
from memory_os.domain.gate.thresholds import thresholds_for
from memory_os.embedding.factory import make_embedder
from memory_os.embedding.port import EmbedderIdentity

WANTED_IN_REVIEW = 0.85
"""The share of duplicates that must be merged or in review."""
FLOOR_MARGIN = 0.1
"""How far the review floor lies below the highest that keeps that share: on pairs that nobody tuned to it is lower."""
HEADROOM = 0.05
"""How much lower the threshold of memories of the past hour lies than that of older ones (the seed has 0.10)."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One labelled pair with its similarity."""

    existing: Statement
    new: Statement
    verdict: str
    kind: str
    aliases: Aliases
    similarity: float = 0.0

    def judged(self, thresholds: Thresholds) -> Judgement:
        """What the gate says, the existing memory being older than an hour."""
        return judge(
            self.existing,
            self.new,
            similarity=self.similarity,
            thresholds=thresholds,
            recent=False,
            aliases=self.aliases,
        )


def read_pairs(folder: Path, name: str) -> list[Pair]:
    """The pairs of `NAME.jsonl`, with the aliases of `NAME_aliases.json` or of each line."""
    path = folder / f"{name}.jsonl"
    if not path.exists():
        sys.exit(
            f"{path} is not there: the labelled pairs are kept outside the repository; give their folder as --data"
        )
    beside = folder / f"{name}_aliases.json"
    declared = json.loads(beside.read_text()) if beside.exists() else {}
    pairs = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        aliases = row.get("aliases") or declared.get(row["id"], {})
        names = [(entity, name) for entity, others in aliases.items() for name in (entity, *others)]
        pairs.append(
            Pair(
                Statement(row["a"], row["label_a"]),
                Statement(row["b"], row["label_b"]),
                row["verdict"],
                row["kind"],
                Aliases(names),
            )
        )
    return pairs


async def embed(pairs: list[Pair]) -> tuple[EmbedderIdentity, list[Pair]]:
    """The pairs with the cosine of their vectors."""
    provider = os.environ.get("EMBEDDING_PROVIDER", "bundled")
    if provider == "http":
        embedder = make_embedder(
            "http",
            url=os.environ["EMBEDDING_URL"],
            api_key=os.environ.get("EMBEDDING_API_KEY"),
            model=os.environ["EMBEDDING_MODEL"],
        )
    else:
        embedder = make_embedder("bundled")
    try:
        vectors = await embedder.embed([pair.existing.text for pair in pairs] + [pair.new.text for pair in pairs])
        left, right = vectors[: len(pairs)], vectors[len(pairs) :]
        cosines = np.sum(left * right, axis=1)
        return embedder.identity, [
            Pair(pair.existing, pair.new, pair.verdict, pair.kind, pair.aliases, float(cosine))
            for pair, cosine in zip(pairs, cosines, strict=True)
        ]
    finally:
        await embedder.close()


def measure(pairs: list[Pair], thresholds: Thresholds) -> dict[str, Any]:
    """Precision, recall and the shares that the gate is held to, with the outcomes by kind."""
    outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    verdicts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        found = pair.judged(thresholds).verdict
        outcomes[f"{pair.verdict}, {pair.kind}"][found] += 1
        verdicts[pair.verdict][found] += 1
    duplicates = verdicts["duplicate"]
    merged = sum(counts["merge"] for counts in verdicts.values())
    false = merged - duplicates["merge"]
    others = sum(counts.total() for counts in verdicts.values()) - duplicates.total()
    return {
        "precision": round(duplicates["merge"] / merged, 3) if merged else None,
        "recall": share(duplicates, "merge"),
        "merged_or_review": share(duplicates, "merge", "review"),
        "false_merges": f"{false} of {others}",
        "false_merges_by_kind": {
            kind: counts["merge"]
            for kind, counts in outcomes.items()
            if counts["merge"] and not kind.startswith("duplicate")
        },
        "supersessions_named": share(verdicts["supersede"], "supersede"),
        "contradictions_named": share(verdicts["contradict"], "contradict"),
        "distinct_in_review": share(verdicts["distinct"], "review"),
        "by_kind": {kind: dict(counts.most_common()) for kind, counts in sorted(outcomes.items())},
    }


def share(counts: Counter[str], *verdicts: str) -> float:
    """The share of these verdicts."""
    return round(sum(counts[verdict] for verdict in verdicts) / counts.total(), 3) if counts else 0.0


def raw(pairs: list[Pair], threshold: float) -> dict[str, float]:
    """What the similarity alone would merge at a threshold: shares of the duplicates and of all others."""
    return {
        "duplicates": float(np.mean([pair.similarity >= threshold for pair in pairs if pair.verdict == "duplicate"])),
        "others": float(np.mean([pair.similarity >= threshold for pair in pairs if pair.verdict != "duplicate"])),
    }


def calibrate(pairs: list[Pair]) -> Thresholds:
    """The thresholds that merge most without a false merge; of those, the highest, with the highest review floor.

    The floor is chosen after them: `FLOOR_MARGIN` below the highest that leaves `WANTED_IN_REVIEW` of the duplicates
    merged or in review.
    """
    best = Thresholds(0.95, 0.95, 0.95)
    score = (-1, 0.0)
    for older in (step / 100 for step in range(60, 96, 5)):
        tried = Thresholds(recent=round(older - HEADROOM, 2), older=older, review=0.5)
        merges = [pair.verdict for pair in pairs if pair.judged(tried).verdict == "merge"]
        if all(verdict == "duplicate" for verdict in merges) and (len(merges), older) > score:
            best, score = tried, (len(merges), older)
    floors = [Thresholds(best.recent, best.older, step / 100) for step in range(75, 20, -5)]
    enough = [tried for tried in floors if measure(pairs, tried)["merged_or_review"] >= WANTED_IN_REVIEW]
    floor = (enough or floors[-1:])[0].review
    return Thresholds(best.recent, best.older, round(floor - FLOOR_MARGIN, 2))


def milliseconds(pairs: list[Pair], thresholds: Thresholds) -> dict[str, float]:
    """Time of one judgement: of pairs that were read before, and of texts seen for the first time."""
    fresh = [
        Pair(
            Statement(f"{pair.existing.text} {at}", pair.existing.label),
            Statement(f"{pair.new.text} {at}", pair.new.label),
            pair.verdict,
            pair.kind,
            pair.aliases,
        )
        for at, pair in enumerate(pairs)
    ]
    figures = {}
    for name, some in (("both_texts_new", fresh), ("both_texts_known", fresh)):
        started = time.process_time()
        for pair in some:
            pair.judged(thresholds)
        figures[name] = round(1000 * (time.process_time() - started) / len(some), 2)
    return figures


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/dedup.py --data ../shared/data")
    options.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the labelled pairs")
    options.add_argument("--pairs", default="dedup_dev", help="their name without .jsonl")
    given = options.parse_args()
    identity, pairs = asyncio.run(embed(read_pairs(given.data, given.pairs)))
    picked = calibrate(pairs)
    used = thresholds_for(identity.model, identity.dimension)
    floors = sorted({*(step / 100 for step in range(30, 80, 10)), used.review})
    report(
        "dedup",
        {
            "pairs": len(pairs),
            "embedder": f"{identity.model}, {identity.dimension} dimensions",
            "thresholds": {"recent": used.recent, "older": used.older, "review": used.review},
            "calibrated": {"recent": picked.recent, "older": picked.older, "review": picked.review},
            "gate": measure(pairs, used),
            "similarity_alone": {
                f"at {threshold}": raw(pairs, threshold) for threshold in sorted({used.recent, used.older, 0.85})
            },
            "review_floors": {
                f"{floor}": {
                    name: value
                    for name, value in measure(pairs, Thresholds(used.recent, used.older, floor)).items()
                    if name in {"merged_or_review", "distinct_in_review"}
                }
                for floor in floors
            },
            "thresholds_tried": {
                f"{older}": measure(pairs, Thresholds(older, older, used.review))["recall"]
                for older in (step / 100 for step in range(60, 96, 5))
            },
            "milliseconds": milliseconds(pairs, used),
        },
    )


if __name__ == "__main__":
    main()
