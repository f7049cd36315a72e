"""The tables of `quality.py`, in the Markdown that the documentation shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Json = dict[str, Any]

NEWEST = {"newest_first": 95.0, "old_shown": 0.0}
PATHS = {"forbidden_absent": "95 %", "stale_fact_rate": "0"}
"""The aims of `newest_fact` and `path_eval`."""

AIMS = {
    "locomo": {
        "R@5": 70.0,
        "R@10": 80.0,
        "by_kind": {"multi-hop": 48.0, "temporal": 76.0, "open-domain": 40.0, "single-hop": 89.0, "adversarial": 89.0},
    },
    "musique": {"R@5": 62.0},
    "hotpotqa": {"R@5": 84.0},
    "2wiki": {"R@5": 72.0},
}
"""What was set as the aim before the first run, in per cent."""


def print_set(name: str, made: Json) -> None:
    """Print what was measured of one set."""
    print(f"\n{name}: {made['questions']} questions, {made['documents']} documents\n")
    for line in set_table(name, made):
        print(line)
    print(flush=True)


def set_table(name: str, made: Json) -> list[str]:
    """All ways of asking and the reference methods, a row each."""
    rows = {**made["product"], **made["reference"]}
    first = next(iter(rows.values()))
    measures = [measure for measure in first if measure not in {"by_kind", "median_ms", "degraded"}]
    aims = AIMS[name]
    told_first = [kind for kind in aims.get("by_kind", {}) if kind in first["by_kind"]]
    kinds = [*told_first, *(kind for kind in first["by_kind"] if kind not in told_first)]
    told: Json = {"aim": {**aims, "by_kind": aims.get("by_kind", {})}, **rows}
    return table(
        [name, *measures, *kinds, "median ms", "degraded"],
        (
            [
                way,
                *(figure(row.get(measure)) for measure in measures),
                *(figure(row["by_kind"].get(kind)) for kind in kinds),
                figure(row.get("median_ms")),
                str(row.get("degraded", "")),
            ]
            for way, row in told.items()
        ),
    )


def print_summary(made: Json) -> None:
    """Print one line for each aim."""
    print("\n" + "\n".join(summary_table(made)) + "\n", flush=True)


def summary_table(made: Json) -> list[str]:
    """What has an aim, beside the reference methods."""
    return table(["in per cent", "found", "BM25", "MiniLM", "aim", ""], _summary(made))


def _summary(made: Json) -> Iterable[list[str]]:
    for name, one in made["sets"].items():
        ours = one["product"]["default"]
        bm25, cosine = one["reference"].values()
        for measure, aim in AIMS[name].items():
            if isinstance(aim, dict):
                for kind, least in aim.items():
                    values = [row["by_kind"].get(kind) for row in (ours, bm25, cosine)]
                    yield [f"{name} {kind}", *map(figure, values), figure(least), verdict(values[0], least)]
            else:
                values = [row[measure] for row in (ours, bm25, cosine)]
                yield [f"{name} {measure}", *map(figure, values), figure(aim), verdict(values[0], aim)]
    yield from _newest(made.get("newest_fact", {}))
    for measure, told in made.get("path_eval", {}).items():
        aim = PATHS.get(measure)
        yield [f"path_eval: {measure}", str(told), "", "", aim or "", ""]


def _newest(answers: Json) -> Iterable[list[str]]:
    """Whether the newest fact comes first, beside the arms of words and of vectors alone."""
    ways = [answers.get(way, {}) for way in ("all arms", "text alone", "vector alone")]
    for measure, aim in NEWEST.items():
        shares = [100 * way[measure] if measure in way else None for way in ways]
        if shares[0] is not None:
            met = shares[0] <= aim if measure == "old_shown" else shares[0] >= aim
            yield [f"newest_fact: {measure} (beside: the arm alone)", *map(figure, shares), figure(aim),
                   "met" if met else "missed"]  # fmt: skip


def newest_table(made: Json) -> list[str]:
    """All ways in which `newest_fact` asks."""
    measures = ("newest_first", "newest_found", "old_shown", "old_present_and_labelled")
    return table(
        ["in per cent", *(measure.replace("_", " ") for measure in measures)],
        (
            [way, *(figure(100 * answers[measure] if measure in answers else None) for measure in measures)]
            for way, answers in made["answers"].items()
        ),
    )


def path_table(made: Json) -> list[str]:
    """What `path_eval` counts, and how much of what is expected each choice of arms finds."""
    counted = [
        [measure.replace("_", " "), str(told), PATHS.get(measure, "")]
        for measure, told in made.items()
        if isinstance(told, str | float)
    ]
    chosen = [[f"expected found: {arms}", str(told["expected_found"]), ""] for arms, told in made["by_arms"].items()]
    return table([f"{made['questions']} questions", "", "aim"], [*counted, *chosen])


def verdict(value: float | None, aim: float) -> str:
    """Whether an aim is met."""
    return "" if value is None else "met" if value >= aim else "missed"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]


def figure(value: float | None) -> str:
    """One decimal, or nothing."""
    return "" if value is None else f"{value:.1f}"
