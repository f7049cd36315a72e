"""The plots of the documentation, as SVG under `docs/assets/`, from the JSON that the benchmarks keep.

    python benchmarks/plots.py

draws all of them again without measuring anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stack import RESULTS

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
INK, PAPER = "#1b2a38", "#f7f9fb"
COLOURS = {"default": "#2f6db3", "BM25": "#e08a3c", "MiniLM": "#8a9aa8", "aim": "#b3261e"}
ARMS = {"all arms": "#2f6db3", "vector": "#8a63b8", "text": "#e08a3c", "graph": "#3c9a6a"}
LIVES = {"with cycles": "#2f6db3", "without": "#8a9aa8"}
MEANWHILE = {"without a cycle": "#8a9aa8", "meanwhile": "#2f6db3"}

Json = dict[str, Any]


@contextmanager
def figure(name: str, width: float, height: float, columns: int = 1) -> Iterator[Any]:
    """Axes to draw on; kept as an SVG that is the same for the same figures, with its words as text."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second, and only tools of development need it

    mpl.use("svg")
    mpl.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "memory-os",
            "font.family": "sans-serif",
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": INK,
            "text.color": INK,
            "axes.labelcolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
        }
    )
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the backend was chosen

    drawn, axes = plt.subplots(1, columns, figsize=(width, height), facecolor=PAPER, layout="constrained")
    yield axes
    ASSETS.mkdir(parents=True, exist_ok=True)
    drawn.savefig(ASSETS / f"{name}.svg", facecolor=PAPER, metadata={"Date": None, "Creator": None})
    plt.close(drawn)


def draw(kind: str, made: Json, name: str) -> str:
    """Draw a plot of a kind; gives where it lies, or why there is none: figures must not be lost for want of it."""
    try:
        return str(PLOTS[kind](made, name))
    except KeyError as missing:
        return f"none: the figures of {name} have no {missing}, run `make bench-{kind}`"
    except ImportError as error:
        return f"none ({error}): `make bench-{kind}` installs what draws, `python benchmarks/plots.py` draws it later"


def quality(made: Json, name: str = "quality") -> Path:
    """Recall of the product beside BM25 and the plain model, and LoCoMo by kind of question."""
    groups = list(_groups(made))
    with figure(name, 9, 3.8) as axes:
        for offset, method in enumerate(("MiniLM", "BM25", "default")):
            places = [place + (offset - 1) * 0.27 for place in range(len(groups))]
            bars = axes.bar(
                places, [values[method] for _, values in groups], width=0.25, color=COLOURS[method],
                label={"default": "Memory OS", "MiniLM": "MiniLM, exact cosine"}.get(method, method),
            )  # fmt: skip
            axes.bar_label(bars, fmt="%.0f", fontsize=8, padding=1)
        for place, (_, values) in enumerate(groups):
            if values["aim"]:
                axes.hlines(values["aim"], place - 0.42, place + 0.42, color=COLOURS["aim"], linewidth=1.2,
                            label="aim" if place == 0 else None)  # fmt: skip
        axes.set_xticks(range(len(groups)), [label for label, _ in groups], fontsize=9)
        axes.set_ylim(0, 108)
        axes.set_ylabel("recall, %")
        axes.legend(ncols=4, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.16))
    return ASSETS / f"{name}.svg"


def _groups(made: Json) -> Iterator[tuple[str, dict[str, float]]]:
    from quality_tables import AIMS  # noqa: PLC0415 - only this plot has aims

    for name, one in made["sets"].items():
        bm25, cosine = one["reference"].values()
        rows = {"default": one["product"]["default"], "BM25": bm25, "MiniLM": cosine}
        measure = "R@10" if name == "locomo" else "R@5"
        aims: Json = AIMS[name]
        yield (
            f"{name}\n{measure}",
            {method: row[measure] for method, row in rows.items()} | {"aim": aims.get(measure, 0)},
        )
        if name == "locomo":
            for kind in aims["by_kind"]:
                if kind in rows["default"]["by_kind"]:
                    values = {method: row["by_kind"][kind] for method, row in rows.items()}
                    yield f"{kind}\nR@10", values | {"aim": aims["by_kind"][kind]}


def growth(made: Json, name: str = "retrieval") -> Path:
    """Median and 95th percentile of an answer against the size of the tenant, on logarithmic scales."""
    sizes = sorted(int(size) for size in made["sizes"])
    with figure(name, 9, 3.6, columns=2) as both:
        for axes, measure, title in zip(both, ("p50_ms", "p95_ms"), ("median", "95th percentile"), strict=True):
            for arm, colour in ARMS.items():
                values = [made["sizes"][str(size)]["asked"][arm][measure] for size in sizes]
                axes.plot(sizes, values, marker="o", color=colour, label=arm if arm == "all arms" else f"{arm} alone")
            axes.set_xscale("log")
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
            axes.set_title(title, fontsize=10)
            axes.set_xlabel("memories of the tenant")
            axes.set_ylabel("ms")
        both[0].legend(frameon=False, fontsize=9)
    return ASSETS / f"{name}.svg"


def year(made: Json, name: str = "year") -> Path:
    """What there was in a simulated year with its cycles, and in the same year without."""
    with figure(name, 9, 3.6, columns=2) as both:
        for axes, measure, title in zip(both, ("in force", "edges"), ("memories in force", "edges"), strict=True):
            for life, colour in LIVES.items():
                counts = made["lives"][life]["counts"]
                axes.plot([one["day"] for one in counts], [one[measure] for one in counts], color=colour, label=life)
            axes.set_ylim(bottom=0)
            axes.set_title(title, fontsize=10)
            axes.set_xlabel("day")
        both[0].legend(frameon=False, fontsize=9)
    return ASSETS / f"{name}.svg"


def cycles(made: Json, name: str = "cycles") -> Path:
    """What writes and questions take while a cycle runs, beside what they take otherwise."""
    with figure(name, 9, 3.2, columns=2) as both:
        for axes, kind, title in zip(both, ("write", "retrieve"), ("writes", "questions"), strict=True):
            for offset, (when, colour) in enumerate(MEANWHILE.items()):
                values = [one["mix"][when][kind]["p50_ms"] for one in made["cycles"].values()]
                places = [place + (offset - 0.5) * 0.36 for place in range(len(values))]
                axes.bar_label(axes.bar(places, values, width=0.34, color=colour, label=when), fmt="%.1f", fontsize=8)
            axes.set_xticks(range(len(made["cycles"])), list(made["cycles"]))
            axes.set_title(title, fontsize=10)
            axes.set_ylabel("median, ms")
        both[0].legend(frameon=False, fontsize=9)
    return ASSETS / f"{name}.svg"


PLOTS: dict[str, Callable[[Json, str], Path]] = {
    "quality": quality,
    "retrieval": growth,
    "year": year,
    "cycles": cycles,
}
"""What draws the figures of which benchmark."""


def main() -> None:
    """Draw what has been measured."""
    for name in PLOTS:
        path = RESULTS / f"{name}.json"
        print(draw(name, json.loads(path.read_text()), name) if path.exists() else f"{path} is not there yet")


if __name__ == "__main__":
    main()
