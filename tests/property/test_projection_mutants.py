"""The test of histories has teeth: with a fault in the product it fails, for the invariant that the fault breaks.

Each mutant gets histories of the rules that can meet it, so that few are enough, and the same ones each time: what is
caught today is caught tomorrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from tests.property.expected_graph import InvariantBrokenError
from tests.property.histories import TURN, Histories, fates, mostly
from tests.property.mortal_workers import Fate
from tests.property.mutants import MUTANTS, Mutant
from tests.property.stages import Stage

HISTORIES = 2_000
"""At most; a mutant is let go as soon as one history fails."""

BESIDE = frozenset(
    {
        *("change", "retitle", "declare", "rename", "realias", "undeclare", "merge", "split"),
        *("tie", "untie", "link", "unlink", "record"),
        *("rebuild", "repair", "lose_graph", "reopen", "work_blindly", "deliver_again", "poison", "cure"),
    }
)
"""Rules that most faults don't need: what remains are memories written, projected, interrupted and taken over."""

NEEDED = {"increments in place": {"deliver_again"}, "no fence": set[str](), "no tombstones": {"work_blindly"}}
"""The mutants that are looked for, and which of those rules meet each."""

FATES = {
    "no fence": st.sampled_from((Fate(), Fate("park", "before:apply"))),
}
"""What workers meet where most of what `Histories` draws is beside the point."""


def turn(self: Histories, which: int, fate: Fate, expired: bool) -> None:
    """A turn of a worker, as `Histories.work`, with the fates of a mutant."""
    self.take_turn(which, fate, expired)


def without_rule(name: str) -> Callable[..., Any]:
    """A rule as a plain method, which histories don't draw and others may still call."""
    rule: Callable[..., Any] = getattr(Histories, name)

    def plain(*given: Any, **named: Any) -> None:
        rule(*given, **named)

    return plain


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS if mutant.name in NEEDED], ids=lambda each: each.name)
@pytest.mark.parametrize("stage", ["networkx"], indirect=True)
def test_a_fault_in_the_product_is_found(stage: Stage, mutant: Mutant) -> None:
    plain = {name: without_rule(name) for name in BESIDE - NEEDED[mutant.name]}
    work = rule(which=st.integers(0, 1), fate=FATES.get(mutant.name, fates(TURN)), expired=mostly)(turn)
    wrap = staticmethod(mutant.wrap) if mutant.wrap else None
    histories = type("MutantHistories", (Histories,), {**plain, "work": work, "stage": stage, "wrap_backend": wrap})
    with mutant.applied(), pytest.raises(InvariantBrokenError):
        run_state_machine_as_test(
            histories,
            settings=settings(
                max_examples=HISTORIES,
                stateful_step_count=25,
                derandomize=True,
                deadline=None,
                database=None,
                report_multiple_bugs=False,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
