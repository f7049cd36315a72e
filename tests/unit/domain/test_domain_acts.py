"""The kinds of acts beside the statuses and labels that they lead to."""

from __future__ import annotations

from typing import get_args

from memory_os.domain.acts import ACTS, CALLS, ActKind
from memory_os.domain.labels import LABELS, STATUSES


def test_the_rows_are_the_kinds() -> None:
    assert tuple(ACTS) == get_args(ActKind)
    assert all(act.kind == kind and act.meaning.endswith(".") for kind, act in ACTS.items())


def test_each_status_has_the_one_act_that_leads_to_it() -> None:
    led_to = [act.status for act in ACTS.values() if act.status is not None]
    assert sorted(led_to) == sorted(STATUSES)


def test_every_act_with_a_status_can_be_undone_and_suits_some_label() -> None:
    for act in ACTS.values():
        if act.status is not None:
            assert act.undoable
            assert any(act.status in label.statuses for label in LABELS.values())


def test_the_calls_are_the_acts_of_their_statuses() -> None:
    assert {status: ACTS[kind].status for status, kind in CALLS.items()} == {status: status for status in CALLS}
