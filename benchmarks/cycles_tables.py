"""The tables of `year.py` and `cycles.py`, in the Markdown that the documentation shows."""

from __future__ import annotations

from typing import Any, Final

from quality_tables import table

AIM: Final = 1.2
"""What a write or a question may take while a cycle runs, beside what it takes without."""

HOLDS: Final = {True: "yes", False: "**no**", None: "not checked: the rule is absent"}

Json = dict[str, Any]


def year_table(made: Json) -> list[str]:
    """What must hold at the end of a year, and whether it does."""
    rows = [[name, HOLDS[one["holds"]], _told(one)] for name, one in made["checks"].items()]
    return table(["what must hold", "holds", "found"], rows)


def _told(one: Json) -> str:
    """The figures of a check that are numbers; what it lists is in the JSON."""
    if "rounds" in one:
        last = one["rounds"][-1]
        one = {"asked": len(one["rounds"]) * one["times"], **last}
    return ", ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in one.items()
        if isinstance(value, int | float) and name != "holds"
    )


def lives_table(made: Json) -> list[str]:
    """What there was at the end of each quarter, with cycles and without."""
    rows = []
    for measure in ("memories", "in force", "entities", "edges", "archived edges"):
        for life, one in made["lives"].items():
            counts = one["counts"]
            ends = [counts[len(counts) * quarter // 4 - 1][measure] for quarter in (1, 2, 3, 4)]
            rows.append([f"{measure}, {life}", *(f"{count:,}" for count in ends)])
    return table(["", "after 3 months", "6", "9", "12"], rows)


def cycles_table(made: Json) -> list[str]:
    """Each cycle over the large tenant: what it took, and what others felt of it."""
    rows = []
    for cycle, one in made["cycles"].items():
        slowest = max(one["seconds_by_rule"].items(), key=lambda pair: pair[1] * (pair[0] != "waiting"))
        rows.append(
            [
                cycle,
                f"{one['seconds']:,.1f}",
                f"{slowest[0]} {slowest[1]:,.1f}",
                f"{sum(one['actions'].values()):,}",
                f"{one['worker_mb']['before']:.0f} -> {one['worker_mb']['peak']:.0f}",
                *(_times(one["slower"][kind]) for kind in ("write", "retrieve")),
            ]
        )
    aim = f"(aim: under {AIM} x)"
    return table(
        [
            "cycle",
            "seconds",
            "of it the slowest rule",
            "actions",
            "worker's MB",
            f"writes take {aim}",
            f"questions {aim}",
        ],
        rows,
    )


def _times(value: float | None) -> str:
    return "none was made meanwhile" if value is None else f"{value:.2f} x"
