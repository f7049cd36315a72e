"""Whatever happens to users, workers, queue and graph: once all is settled, the graph is `project(canonical)`."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.property.histories import Histories
from tests.property.stages import Stage

PARTS = 8
HISTORIES = int(os.environ.get("MEMORY_OS_HISTORIES", "0"))
"""Over both backends together, drawn anew each time, as `make test-long` asks for; without it the same each time, so
that a run that fails speaks of the change and not of the draw."""

ALWAYS = 2_000

STEPS = 16


@pytest.mark.timeout(900 + HISTORIES)
@pytest.mark.parametrize("part", range(PARTS // 2))
@pytest.mark.parametrize("stage", ["networkx", "falkor"], indirect=True)
def test_any_history_ends_in_the_projection_of_its_rows(stage: Stage, part: int) -> None:
    histories = type(f"Histories{part}", (Histories,), {"stage": stage})
    run_state_machine_as_test(
        histories,
        settings=settings(
            max_examples=max(1, (HISTORIES or ALWAYS) // PARTS),
            derandomize=not HISTORIES,
            stateful_step_count=STEPS,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
