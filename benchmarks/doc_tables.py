"""Puts the measured tables of retrieval into `docs/benchmarks.md`, from the JSON that the benchmarks keep.

    python benchmarks/doc_tables.py

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; everything else of the page is left alone, and so is a
table whose benchmark has not been run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quality_tables import newest_table, path_table, set_table, summary_table
from retrieval_tables import cpu_table, crowd_table, growth_table
from stack import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"

Json = dict[str, Any]

TABLES: dict[str, tuple[str, Callable[[Json], list[str]]]] = {
    "quality": ("quality", summary_table),
    **{
        name: ("quality", lambda made, name=name: set_table(name, made["sets"][name]))
        for name in ("locomo", "musique", "hotpotqa", "2wiki")
    },
    "newest fact": ("newest_fact", newest_table),
    "paths": ("path_eval", path_table),
    "retrieval": ("retrieval", growth_table),
    "retrieval processor": ("retrieval", cpu_table),
    "retrieval clients": ("retrieval", crowd_table),
}
"""The file of results of each table, and what makes it."""

_PLACE = re.compile(r"(<!-- table: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(page: str) -> str:
    """The page with all tables that there are results for."""
    return _PLACE.sub(lambda place: f"{place[1]}\n{_table(place[2]) or _kept(place[0])}\n\n{place[3]}", page)


def _table(name: str) -> str | None:
    file, make = TABLES[name]
    path = RESULTS / f"{file}.json"
    try:
        return "\n".join(make(json.loads(path.read_text())))
    except (FileNotFoundError, KeyError):  # not run, not with this set, or by an older benchmark of that name
        print(f"{name}: no such figures in {path}")
        return None


def _kept(place: str) -> str:
    return place.partition("-->\n")[2].removesuffix("<!-- end -->").strip()


def main() -> None:
    """Write the page."""
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
