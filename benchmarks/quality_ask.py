"""Asks the product every question, with all of it and with parts left out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from quality_metrics import Ranking
from quality_sets import Corpus, Question
from quality_stores import client
from stack import wait_until

ARMS = ("vector", "text", "graph")
SHOWN = 30
"""Records of a pack: recall is counted down to 20."""

BUDGET = 32_000
"""Tokens of a pack, the most that may be asked for: thirty passages stay far below."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of asking: what the request has beside the question."""

    name: str
    body: Json


def variants(properties: Json) -> list[Variant]:
    """All ways that this product knows, the default first.

    Args:
        properties: Those of `RetrievalRequest` in the API's own document.
    """
    plain: Json = {"rerank": False} if "rerank" in properties else {}
    made = [Variant("default", {**plain, "arms": dict.fromkeys(ARMS, True)})]
    made += [Variant(f"{arm} alone", {**plain, "arms": {name: name == arm for name in ARMS}}) for arm in ARMS]
    made += [Variant(f"without {arm}", {**plain, "arms": {name: name != arm for name in ARMS}}) for arm in ARMS]
    made += [Variant(f"fusion by {value}", {**plain, "fusion": value}) for value in properties.get("fusion", ())]
    if "rerank" in properties:
        made.append(Variant("with rerank", {"rerank": True}))
    return made


def known_properties(address: str) -> Json:
    """What a request may have: its properties, and for `fusion` the ways that are not the default."""
    document = httpx.get(f"{address}/schema/openapi.json", timeout=60).raise_for_status().json()
    schemas = document["components"]["schemas"]
    found: Json = dict(schemas["RetrievalRequest"]["properties"])
    chosen = found.pop("fusion", None)
    if chosen:
        found["fusion"] = [value for value in _choices(chosen, schemas) if value != chosen.get("default")]
    return found


def _choices(schema: Json, schemas: Json) -> list[Any]:
    if "$ref" in schema:
        return _choices(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    parts = [
        choice for one in (*schema.get("oneOf", ()), *schema.get("anyOf", ())) for choice in _choices(one, schemas)
    ]
    return list(schema.get("enum", parts))


def ask_all(
    address: str, tokens: dict[str, str], corpora: Sequence[Corpus], ways: Sequence[Variant]
) -> dict[str, list[Ranking]]:
    """Ask every question in every way, the ways in turn, so that a busy moment of the machine meets all alike."""
    found: dict[str, list[Ranking]] = {way.name: [] for way in ways}
    total, number = sum(len(corpus.questions) for corpus in corpora), 0
    for corpus in corpora:
        with client(address, tokens[corpus.name]) as api:
            asker = Asker(api, corpus)
            for question in corpus.questions:
                asker.warm(question, ways)
                turn = number % len(ways)
                for way in (*ways[turn:], *ways[:turn]):
                    found[way.name].append(asker.ask(question, way))
                number += 1
                if number % 100 == 0 or number == total:
                    print(f"asked {number} of {total} questions in {len(ways)} ways", flush=True)
    return found


class Asker:
    """Asks about one corpus, and knows its documents by their ids."""

    def __init__(self, api: httpx.Client, corpus: Corpus) -> None:
        self._api = api
        self._keys = {str(corpus.ident(document.key)): document.key for document in corpus.documents}

    def warm(self, question: Question, ways: Sequence[Variant]) -> None:
        """Have the question embedded, and token vectors made: from here on both are look-ups, for all ways alike."""
        for way in (ways[0], *(way for way in ways if way.body.get("rerank"))):
            # What was not ready within the service's time budget is made behind its answer.
            wait_until(lambda way=way: not self._get(question, way).get("degraded_arms"), 120, "vectors", every_s=0.2)

    def ask(self, question: Question, way: Variant) -> Ranking:
        """One answer; what is no document of the corpus takes a place all the same. The time is without embedding."""
        started = time.perf_counter()
        pack = self._get(question, way)
        millis = (time.perf_counter() - started) * 1000
        found = [self._keys.get(item["id"], item["id"]) for item in pack["items"]]
        cut = [one for one in pack["omitted"] if one["reason"] == "budget"]
        assert not cut, f"the budget cut an answer: {cut}"
        degraded = bool(pack.get("degraded_arms"))
        return Ranking(question.kind, question.gold, found, millis - pack["timings_ms"].get("embed", 0.0), degraded)

    def _get(self, question: Question, way: Variant) -> Json:
        body = {"query": question.text, "limits": {"memories": SHOWN}, "budget_tokens": BUDGET, **way.body}
        pack: Json = self._api.post("/v1/retrieve", json=body).raise_for_status().json()
        return pack
