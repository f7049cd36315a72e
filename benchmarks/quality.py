"""How good retrieval is, with no judge model: evidence recall, MRR and nDCG of the real product, end to end.

Every corpus is a tenant of its own, stored through the API and asked by `POST /v1/retrieve`: conversations as sources
with a passage a turn (LoCoMo), passages with titles as memories (MuSiQue, HotpotQA, 2Wiki). Beside it stand BM25 and
the plain model with exact cosine over the same documents. The arms are measured alone and left out. `newest_fact` and
`path_eval` are benchmarks of their own, whose figures are put into the table.

The data is kept outside the repository. Embedding takes minutes: with `--home` stores and vectors are kept, and the
next run asks at once. A set of another file of the same form is measured with `--locomo FILE` and the like.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import plots
import quality_reference as reference
from quality_ask import ask_all, known_properties, variants
from quality_metrics import Ranking, by_kind, degraded, figures, median_ms
from quality_sets import SETS, Corpus, read_set
from quality_stores import Home, filled, open_home
from quality_tables import print_set, print_summary
from stack import RESULTS, parser, report

DEPTHS = {"locomo": (5, 10, 20), "musique": (2, 5, 10), "hotpotqa": (2, 5, 10), "2wiki": (2, 5, 10)}
KIND_DEPTH = {"locomo": 10, "musique": 5, "hotpotqa": 5, "2wiki": 5}
"""The depth at which kinds of question are told apart."""

OTHERS = ("newest_fact", "path_eval")
"""Benchmarks of their own, run by their own commands."""

Json = dict[str, Any]


def measure(name: str, corpora: Sequence[Corpus], home: Home, settings: dict[str, str], *, ablations: bool) -> Json:
    """One set: the product in all ways, and the reference methods."""
    with filled(home, corpora, settings) as (address, tokens):
        ways = variants(known_properties(address))[: None if ablations else 1]
        asked = ask_all(address, tokens, corpora, ways)
    rows = {
        way: row(name, rankings) | {"median_ms": median_ms(rankings), "degraded": degraded(rankings)}
        for way, rankings in asked.items()
    }
    return {
        "documents": sum(len(corpus.documents) for corpus in corpora),
        "questions": sum(len(corpus.questions) for corpus in corpora),
        "product": rows,
        "reference": {
            "BM25": row(name, reference.bm25(corpora)),
            "MiniLM, exact cosine": row(name, reference.cosine(corpora, home.vectors)),
        },
    }


def row(name: str, rankings: Sequence[Ranking]) -> Json:
    """The figures of one method."""
    return {**figures(rankings, DEPTHS[name]), "by_kind": by_kind(rankings, KIND_DEPTH[name])}


def run_other(name: str, arguments: Sequence[str]) -> Json:
    """Run another benchmark and read what it has kept."""
    script = Path(__file__).with_name(f"{name}.py")
    subprocess.run([sys.executable, str(script), *arguments], check=True)
    made: Json = json.loads((RESULTS / f"{name}.json").read_text())
    return made


def plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A number or text, or those of a part; no lists: the other benchmark keeps its misses itself."""
    if isinstance(value, dict):
        return {name: part for name, part in value.items() if isinstance(part, int | float | str)}
    return value if isinstance(value, int | float | str) else None


def few(corpora: Sequence[Corpus], questions: int | None) -> list[Corpus]:
    """The corpora with so many questions of all together, drawn at random but the same in every run."""
    if questions is None:
        return list(corpora)
    places = [(corpus.name, number) for corpus in corpora for number in range(len(corpus.questions))]
    chosen = set(random.Random(1).sample(places, min(questions, len(places))))
    return [
        replace(
            corpus, questions=[one for number, one in enumerate(corpus.questions) if (corpus.name, number) in chosen]
        )
        for corpus in corpora
    ]


def read_options() -> argparse.Namespace:
    """The command line."""
    options = parser(
        __doc__ or "", "python benchmarks/quality.py --home /tmp/quality --only locomo,hotpotqa --questions 100"
    )
    options.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the development data")
    for name in SETS:
        options.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"default: DATA/{name}_dev.json")
    options.add_argument("--only", default=",".join((*SETS, *OTHERS)), help="what to measure, separated by commas")
    options.add_argument("--questions", type=int, help="of each set, for a quick look; all by default")
    options.add_argument("--no-ablations", dest="ablations", action="store_false", help="ask in the default way alone")
    options.add_argument("--home", type=Path, help="folder where filled stores and vectors are kept")
    options.add_argument("--refill", action="store_true", help="fill the kept stores anew (vectors stay)")
    options.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the service")
    options.add_argument("--name", default="quality", help="name of the JSON file and the plot")
    given = options.parse_args()
    given.only = given.only.split(",")
    if unknown := set(given.only) - {*SETS, *OTHERS}:
        options.error(f"--only knows {', '.join((*SETS, *OTHERS))}, not {', '.join(sorted(unknown))}")
    return given


def main() -> None:
    """Run it."""
    given = read_options()
    files = {name: getattr(given, name) or given.data / f"{name}_dev.json" for name in SETS if name in given.only}
    sets = {name: few(read_set(name, path), given.questions) for name, path in files.items()}
    settings = dict(one.split("=", 1) for one in given.set)
    made: Json = {"settings": settings, "questions_of_each": given.questions or "all", "sets": {}}
    with open_home(given.home, refill=given.refill) as home:
        for name, corpora in sets.items():
            made["sets"][name] = measure(name, corpora, home, settings, ablations=given.ablations)
            made["sets"][name]["file"] = files[name].name
            print_set(name, made["sets"][name])
    for name in OTHERS:
        if name in given.only:
            told = run_other(name, ["--data", str(given.data)] if name == "newest_fact" else [])
            made[name] = told["answers"] if name == "newest_fact" else told
            made[name] = {
                measure: plain(value) for measure, value in made[name].items() if plain(value) not in ({}, None)
            }
    report(given.name, made)
    print_summary(made)
    if made["sets"]:
        print(f"plot: {plots.draw('quality', made, given.name)}")


if __name__ == "__main__":
    main()
