"""Whether use can feed on itself: the same questions, asked over and over, with everything useful marked as used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import cycle, islice
from typing import Any, Final

from .history import WORLD, History
from .living import DEPTH, Life

SETTLE: Final = 100
"""Questions after which the worker reinforces what they walked."""

ROUNDS: Final = 2

Json = dict[str, Any]


async def loop(life: Life, history: History, moment: datetime, times: int) -> Json:
    """Ask the questions of what is known `times` times, twice, each in a conversation of its own.

    Returns:
        The edges before and after, the highest confidence, and how much of the answers to unrelated questions stayed.
    """
    since = life.clock.now()
    asked = [one for one in history.questions if one.kind in ("lasting", "of a topic") and one.expected in life.ids]
    edges, before = _edges(life), await _unrelated(life, moment, "before")
    rounds = []
    for number in range(ROUNDS if asked else 0):
        for place, one in enumerate(islice(cycle(asked), times)):
            pack = await life.ask(one.query, moment, f"loop {number} {place}")
            await life.use(pack, [life.ids[one.expected]])
            if place % SETTLE == SETTLE - 1:
                await life.settle()
        await life.settle()
        after = await _unrelated(life, moment, f"after {number}")
        rounds.append({**_state(life), "overlap": _overlap(before, after), "new_edges": len(_edges(life) - edges)})
    life.clock.shift(since, moment)
    return {"questions": len(asked), "times": times, "rounds": rounds}


def _edges(life: Life) -> set[Any]:
    rows = life.clock.rows("SELECT id FROM edges WHERE tenant_id = %(tenant)s", tenant=life.clock.tenant_id)
    return {row["id"] for row in rows}


def _state(life: Life) -> Json:
    (row,) = life.clock.rows(
        "SELECT max(confidence) AS highest_confidence, max(co_reference_count) AS most_references, "
        "count(*) FILTER (WHERE confidence > 1) AS beyond_one FROM edges WHERE tenant_id = %(tenant)s",
        tenant=life.clock.tenant_id,
    )
    return row


async def _unrelated(life: Life, moment: datetime, name: str) -> list[list[str]]:
    """What is answered to questions that have nothing to do with those of the loop."""
    packs = [await life.ask(query, moment, f"unrelated {name} {query}") for query in WORLD["unrelated"]]
    return [[item["id"] for item in pack["items"]][:DEPTH] for pack in packs]


def _overlap(before: Sequence[Sequence[str]], after: Sequence[Sequence[str]]) -> float:
    """The mean share of the records of two lists of answers that both have."""
    shares = [
        len(set(old) & set(new)) / max(len(old), len(new)) if old or new else 1.0
        for old, new in zip(before, after, strict=True)
    ]
    return round(sum(shares) / len(shares), 4)
