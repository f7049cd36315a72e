"""The tables of `retrieval.py`, in the Markdown that the documentation shows."""

from __future__ import annotations

from typing import Any

from quality_tables import table

Json = dict[str, Any]

PARTS = {
    "queue": "waiting for a turn",
    "read": "reading the question",
    "embed": "embedding the question (random vectors)",
    "vector": "the vector arm",
    "text": "the text arm",
    "graph": "the graph arm",
    "hydrate": "reading the records under the policies",
    "pack": "packing",
    "total": "all that the service does",
}
"""The parts of an answer as the service times them, in words; any other is told by its name."""


def growth_table(made: Json) -> list[str]:
    """Each way of asking, its parts, and the raw limits, by the size of the tenant."""
    sizes = made["sizes"]
    largest = list(sizes.values())[-1]
    rows = []
    for kind, sort in (("asked", ""), ("parts", "of it: "), ("raw", "raw: ")):
        for name in largest[kind]:
            cells = [one[kind].get(name) for one in sizes.values()]
            told = [f"{cell['p50_ms']:.1f} / {cell['p95_ms']:.1f}" if cell else "" for cell in cells]
            grown = made["growth"].get(name) if kind == "asked" else None
            label = f"{name} alone" if kind == "asked" and name != "all arms" else PARTS.get(name, name)
            rows.append([sort + label, *told, str(grown["exponent"]) if grown else ""])
    for measure, words in (("p50_ms", "median"), ("p95_ms", "95th percentile")):
        shares = [f"{one['all_over_slowest_arm'][measure]} x" for one in sizes.values()]
        rows.append([f"{words} of all arms, of the slowest arm alone", *shares, ""])
    degraded = [str(one["asked"]["all arms"]["degraded"]) for one in sizes.values()]
    rows.append([f"answers of {made['questions']} that lacked an arm", *degraded, ""])
    return table(["ms, median / 95th percentile", *(f"{int(size):,}" for size in sizes), "exponent"], rows)


def cpu_table(made: Json) -> list[str]:
    """Processor time of an answer with all arms, by process."""
    sizes = made["sizes"]
    processes = list(next(iter(sizes.values()))["cpu_ms_an_answer"])
    return table(
        ["processor ms of an answer", *(f"{int(size):,}" for size in sizes)],
        ([process, *(str(one["cpu_ms_an_answer"][process]) for one in sizes.values())] for process in processes),
    )


def crowd_table(made: Json) -> list[str]:
    """Many clients at once beside one."""
    rows = []
    for one in (made["one_client"], made["many_clients"]):
        faults = ", ".join(f"{count} x {name}" for name, count in one["faults"].items()) or "none"
        told = [f"{one['clients']}", f"{one['p50_ms']:.1f}", f"{one['p95_ms']:.1f}", f"{one['answers_per_s']}"]
        told.append(f"{one['answers']}")
        rows.append([*told, faults])
    ratio = made["many_over_one"]
    rows.append(["ratio", f"{ratio['p50_ms']} x", f"{ratio['p95_ms']} x", f"{ratio['answers_per_s']} x", "", ""])
    return table(["clients", "median ms", "95th percentile", "answers a second", "answers", "faults"], rows)
