"""Going on with a run: one batch of one rule in one transaction, from wherever it stands.

The changes, their actions and the run's place commit together. Whatever stops a run, another process goes on with it
and comes to the same end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from memory_os.cycles.planning import Made, Planned, Run
from memory_os.cycles.works import WORKS
from memory_os.domain.cycles.rules import SERVICE_ROLE, Rule, rules_of
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.outbox.events import Outbox
from memory_os.storage.database import Transaction


@dataclass(frozen=True, slots=True)
class Progress:
    """What a batch came to. `rule` is where the run stands after it; None at its end."""

    run_id: UUID
    rule: str | None
    made: int


async def advance(tx: Transaction, outbox: Outbox, run_id: UUID | None = None) -> Progress | None:
    """Make the next batch of the tenant's oldest open run, or of a certain one.

    Returns:
        What it came to; None if no run is open, or somebody else has it in hand.
    """
    rows = await tx.hot("next_cycle_run", {"tenant_id": tx.tenant_id, "run_id": run_id})
    if not rows:
        return None
    row = rows[0]
    run = Run(row["id"], row["cycle"], row["moment"], Principal(tx.tenant_id, SERVICE_ROLE), outbox)
    rules = [rule for rule in rules_of(run.cycle) if rule.name in WORKS]
    at = next((place for place, rule in enumerate(rules) if rule.name == row["rule"]), 0)
    rule, work = rules[at], WORKS[rules[at].name]
    plan = await work.plan(tx, run, row["cursor"])
    changes = await _untouched(tx, run, rule, plan.changes)
    made = Made(changes) if row["dry_run"] or not changes else await work.make(tx, run, changes)
    await _note(tx, run, rule, made)
    await outbox.enqueue(tx, made.events, None)
    following = rule if plan.cursor is not None else (rules[at + 1] if at + 1 < len(rules) else None)
    counts = {**row["counts"], rule.name: row["counts"].get(rule.name, 0) + len(made.changes)}
    name = following.name if following else None
    await _move(tx, run, name, plan.cursor, counts)
    return Progress(run.id, name, len(made.changes))


async def _untouched(tx: Transaction, run: Run, rule: Rule, changes: Sequence[Planned]) -> list[Planned]:
    """Those changes whose target no earlier rule of the run has acted on: nothing depends on what the run did."""
    if not changes:
        return []
    given = {"tenant_id": tx.tenant_id, "run_id": run.id, "rule": rule.name, "ids": [one.target for one in changes]}
    taken = {row["target_id"] for row in await tx.hot("targets_of_run", given)}
    return [one for one in changes if one.target not in taken]


async def _note(tx: Transaction, run: Run, rule: Rule, made: Made) -> None:
    if not made.changes:
        return
    rows = [
        {
            "id": new_id(),
            "place": place,
            "target_kind": one.kind,
            "target_id": one.target,
            "other_id": one.other,
            "before": one.before,
            "after": one.after,
            "act_id": made.acts.get(one.target),
        }
        for place, one in enumerate(made.changes, start=1)
    ]
    given = {"tenant_id": tx.tenant_id, "run_id": run.id, "rule": rule.name, "rows": _json(rows)}
    await tx.touched("note_actions", given)


async def _move(tx: Transaction, run: Run, rule: str | None, cursor: Any, counts: dict[str, int]) -> None:  # noqa: ANN401 - JSON
    given = {"tenant_id": tx.tenant_id, "run_id": run.id, "rule": rule, "counts": _json(counts)}
    await tx.touched("move_cycle_run", {**given, "cursor": None if cursor is None else _json(cursor)})


def _json(value: Any) -> str:  # noqa: ANN401 - whatever is JSON
    return msgspec.json.encode(value).decode()
