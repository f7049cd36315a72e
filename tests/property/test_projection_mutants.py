"""The test of histories has teeth: with a fault in the product it fails, for the invariant that the fault breaks.

The histories are the same each time, so that a mutant that is caught today is caught tomorrow.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.property.expected_graph import InvariantBrokenError
from tests.property.histories import Histories
from tests.property.mutants import MUTANTS, Mutant
from tests.property.stages import Stage

HISTORIES = 1500
"""At most; a mutant is let go as soon as one history fails."""

CAUGHT = ("increments in place", "no fence", "no tombstones")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS if mutant.name in CAUGHT], ids=lambda each: each.name)
@pytest.mark.parametrize("stage", ["networkx"], indirect=True)
def test_a_fault_in_the_product_is_found(stage: Stage, mutant: Mutant) -> None:
    wrap = staticmethod(mutant.wrap) if mutant.wrap else None
    histories = type("MutantHistories", (Histories,), {"stage": stage, "wrap_backend": wrap})
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
