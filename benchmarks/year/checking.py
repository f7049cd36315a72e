"""What must hold at the end of a year, and how good its answers are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from memory_os.cycles.works import WORKS
from memory_os.domain.cycles.insights import RECURS
from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.labels import LABELS

from .history import History
from .living import Life
from .reviewing import insights_of, offers

FIRST: Final = 5
OVERLAP: Final = 0.95
"""The share of unrelated answers that has to stay while the same is asked over and over."""

LEVEL: Final = 0.5
"""Counts level off where the last quarter adds less than this share of what the first one did."""

Json = dict[str, Any]


@dataclass(slots=True)
class Checks:
    """What was found, with what it was held against."""

    found: dict[str, Json] = field(default_factory=dict)

    def note(self, name: str, holds: bool | None, **told: Any) -> None:  # noqa: ANN401 - whatever is JSON
        """Note a check; None where the rule that it concerns is absent."""
        self.found[name] = {"holds": holds, **told}

    @property
    def failed(self) -> list[str]:
        """The names of what does not hold."""
        return [name for name, one in self.found.items() if one["holds"] is False]

    def lines(self) -> list[str]:
        """One line for each check."""
        words = {True: "holds", False: "DOES NOT HOLD", None: "skipped: the rule is absent"}
        return [
            f"{name}: {words[one['holds']]}; "
            + ", ".join(f"{key} {value}" for key, value in one.items() if key != "holds")
            for name, one in self.found.items()
        ]


async def recall(life: Life, history: History, moment: datetime) -> Json:
    """Recall@5 of the fixed set of questions, by their kinds and of all, and what was missed."""
    hits: dict[str, list[bool]] = defaultdict(list)
    missed = []
    for place, one in enumerate(history.questions):
        pack = await life.ask(one.query, moment, f"at the end {place}")
        hit = life.ids[one.expected] in [item["id"] for item in pack["items"]][:FIRST]
        hits[one.kind].append(hit)
        if not hit:
            missed.append(
                {"query": one.query, "expected": one.expected, "first": [item["text"] for item in pack["items"]][:3]}
            )
    everything = [hit for kind in hits.values() for hit in kind]
    return {
        "recall@5": _share(everything),
        "questions": len(everything),
        "by_kind": {kind: _share(values) for kind, values in hits.items()},
        "missed": missed,
    }


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 4)


async def check(life: Life, history: History, moment: datetime) -> Checks:
    """Check a life that had its cycles.

    Args:
        life: Whose nights had their cycles.
        history: What was lived.
        moment: The last night that there was.
    """
    checks, states = Checks(), _states(life)
    _check_evergreen(checks, life, history, states)
    _check_edges(checks, life)
    _check_lapsed(checks, life, history, states, moment)
    _check_retired(checks, life, history, states)
    _check_goals(checks, life, history, states)
    _check_doubles(checks, life, history, states)
    await _check_behaviors(checks, life, history)
    _check_levels(checks, life)
    return checks


def _states(life: Life) -> dict[str, Json]:
    rows = life.clock.rows(
        "SELECT id::text, label, status, stale_at FROM memories WHERE tenant_id = %(tenant)s",
        tenant=life.clock.tenant_id,
    )
    return {row["id"]: row for row in rows}


def _wrong(life: Life, states: Mapping[str, Json], wanted: Mapping[str, str]) -> dict[str, str]:
    """Of some keys those whose memories have another status than is wanted, with the one that they have."""
    found = {key: states.get(life.ids[key], {}).get("status", "gone") for key in wanted}
    return {key: status for key, status in found.items() if status != wanted[key]}


def _check_evergreen(checks: Checks, life: Life, history: History, states: Mapping[str, Json]) -> None:
    wrong = _wrong(life, states, dict.fromkeys(history.evergreen, "active"))
    wrong |= {key: "stale" for key in history.evergreen if states[life.ids[key]]["stale_at"] is not None}
    for keys in history.chains.values():
        wrong |= _wrong(life, states, {**dict.fromkeys(keys, "superseded"), keys[-1]: "active"})
    checks.note("evergreen knowledge is intact", not wrong, planted=len(history.evergreen), wrong=wrong)


def _check_edges(checks: Checks, life: Life) -> None:
    protected = [kind.name for kind in EDGE_TYPES.values() if kind.protected]
    tenant = life.clock.tenant_id
    (row,) = life.clock.rows(
        "SELECT count(*) AS pruned, count(*) FILTER (WHERE type = ANY(%(protected)s)) AS protected_pruned, "
        "(SELECT count(*) FROM edges AS e WHERE e.tenant_id = %(tenant)s AND e.type = ANY(%(protected)s)) "
        "AS protected_kept, "
        "(SELECT count(*) FROM edges AS e WHERE e.tenant_id = %(tenant)s AND e.type = ANY(%(protected)s) "
        "AND e.faded_at IS NOT NULL) AS protected_faded FROM archived_edges WHERE tenant_id = %(tenant)s",
        tenant=tenant,
        protected=protected,
    )
    holds = row["protected_pruned"] == row["protected_faded"] == 0
    checks.note("no protected edge is pruned or fades", holds, **row)


def _check_lapsed(checks: Checks, life: Life, history: History, states: Mapping[str, Json], moment: datetime) -> None:
    wanted = {
        key: "expired" if until <= moment else "active"
        for key, until in history.opportunities.items()
        if key in life.ids and states[life.ids[key]]["status"] not in ("archived", "superseded")
    }
    latest: dict[str, datetime] = {}
    for key in wanted:  # what the gate merged holds as long as the one that was there first
        latest.setdefault(life.ids[key], history.opportunities[key])
    wanted = {key: status for key, status in wanted.items() if latest[life.ids[key]] == history.opportunities[key]}
    wrong = _wrong(life, states, wanted)
    expired = sum(status == "expired" for status in wanted.values())
    checks.note("lapsed opportunities are expired", not wrong, expired=expired, open=len(wanted) - expired, wrong=wrong)


def _check_retired(checks: Checks, life: Life, history: History, states: Mapping[str, Json]) -> None:
    wanted = {key: "active" if LABELS[label].protected else "archived" for key, label in history.retired.items()}
    wrong = _wrong(life, states, wanted)
    holds = not wrong if "archive_retired" in WORKS else None
    archived = sum(status == "archived" for status in wanted.values())
    checks.note(
        "what refers to the retired system is archived",
        holds,
        archived=archived,
        protected=len(wanted) - archived,
        wrong=wrong,
    )


def _check_goals(checks: Checks, life: Life, history: History, states: Mapping[str, Json]) -> None:
    wrong = _wrong(life, states, history.goals)
    checks.note("goals are as they were left", not wrong, goals=len(history.goals), wrong=wrong)


def _check_doubles(checks: Checks, life: Life, history: History, states: Mapping[str, Json]) -> None:
    active = [key for key in history.doubles if states.get(life.ids[key], {}).get("status") == "active"]
    merged = len(history.doubles) - len(active)
    holds = merged > len(active) if "merge_duplicates" in WORKS else None
    checks.note("most near-duplicates are merged", holds, planted=len(history.doubles), merged=merged)


async def _check_behaviors(checks: Checks, life: Life, history: History) -> None:
    proposed = {
        ident: one for one in insights_of(life) if one["rule"] == "evolve_behaviors" for ident in one["members"]
    }
    (last,) = life.clock.rows(
        "SELECT max(moment) AS moment FROM cycle_runs WHERE tenant_id = %(tenant)s AND cycle = 'monthly'",
        tenant=life.clock.tenant_id,
    )
    due = {key for key in history.recurring if last["moment"] and history.seen(key, last["moment"]) >= RECURS}
    missing = sorted(key for key in due if life.ids[key] not in proposed)
    rash = [key for key in history.passing if life.ids[key] in proposed]
    holds = not missing and not rash if "evolve_behaviors" in WORKS else None
    checks.note(
        "recurring behaviours are proposed", holds, proposed=len(proposed), due=len(due), missing=missing, rash=rash
    )
    evolved = life.clock.rows(
        "SELECT source_memory_id::text AS id FROM edges WHERE tenant_id = %(tenant)s AND type = 'EVOLVED_INTO'",
        tenant=life.clock.tenant_id,
    )
    known = {row["id"] for row in evolved}
    left = sorted(key for key in due if life.ids[key] not in known)
    reviewed = "evolve_behaviors" in WORKS and await offers(life)
    checks.note("accepted behaviours have evolved", not left if reviewed else None, accepted=life.accepted, left=left)


def _check_levels(checks: Checks, life: Life) -> None:
    """What is in force, and the edges: how much the last quarter has added, beside the first."""
    counts = life.counts
    quarter = max(1, len(counts) // 4)
    for name, things in (("in force", "memories in force"), ("edges", "edges")):
        first = counts[quarter - 1][name]
        last = counts[-1][name] - counts[-1 - quarter][name]
        checks.note(f"{things} level off", last < LEVEL * first, first_quarter=first, last_quarter=last)


def check_loop(checks: Checks, looped: Json) -> None:
    """Check what came of asking the same over and over."""
    rounds = looped["rounds"]
    holds = bool(rounds) and all(
        one["new_edges"] == 0 and one["beyond_one"] == 0 and one["overlap"] >= OVERLAP for one in rounds
    )
    checks.note("use does not feed on itself", holds, **looped)


def check_recall(checks: Checks, with_cycles: Json, without: Json) -> None:
    """Check that forgetting has not made answers worse."""
    better, worse = with_cycles["recall@5"], without["recall@5"]
    checks.note("answers are as good as without forgetting", better >= worse, with_cycles=better, without=worse)
