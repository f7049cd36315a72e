from __future__ import annotations

from itertools import product

import pytest

from memory_os.domain.labels import (
    LABELS,
    LAYERS,
    LIFECYCLES,
    RETIRED_LABELS,
    STATUSES,
    check_label,
    check_status,
    check_transition,
)
from memory_os.domain.vocabulary import VocabularyError

LAYER_OF = {
    "identity": ["Attribute", "Preference", "Belief", "Value", "Skill"],
    "direction": ["Goal", "Project", "Commitment", "Decision"],
    "intelligence": ["Behavior", "Insight", "Opportunity", "Event"],
    "world": ["Reference", "Resource"],
}


def test_there_are_fifteen_labels_in_four_layers() -> None:
    assert {layer: [name for name in LABELS if LABELS[name].layer == layer] for layer in LAYERS} == LAYER_OF
    assert all(label.name == name and label.meaning for name, label in LABELS.items())
    assert {label.lifecycle for label in LABELS.values()} == set(LIFECYCLES)


def test_there_are_eight_statuses_and_each_label_allows_only_some() -> None:
    assert tuple(STATUSES) == (
        "active",
        "completed",
        "abandoned",
        "expired",
        "superseded",
        "disputed",
        "archived",
        "retracted",
    )
    for label in LABELS.values():
        assert set(label.statuses) < set(STATUSES)
        assert {"active", "disputed", "retracted"} <= set(label.statuses)
        assert label.statuses == tuple(status for status in STATUSES if status in label.statuses)


def test_only_directions_are_completed_or_abandoned_and_only_opportunities_expire() -> None:
    for label in LABELS.values():
        assert ("completed" in label.statuses) == ("abandoned" in label.statuses) == (label.layer == "direction")
        assert ("expired" in label.statuses) == (label.name == "Opportunity")


def test_events_are_immutable() -> None:
    event = LABELS["Event"]
    assert event.immutable_text
    assert "superseded" not in event.statuses
    assert [label.name for label in LABELS.values() if label.immutable_text] == ["Event"]


def test_the_six_protected_labels_are_those_of_the_design() -> None:
    assert {label.name for label in LABELS.values() if label.protected} == {
        "Preference",
        "Belief",
        "Value",
        "Skill",
        "Behavior",
        "Commitment",
    }


def test_transitions_stay_within_the_labels_statuses_and_lead_back_to_active() -> None:
    for label in LABELS.values():
        assert set(label.transitions) == set(label.statuses)
        for current, steps in label.transitions.items():
            assert set(steps) <= set(label.statuses) - {current}
            assert current == "active" or "active" in steps


def test_every_pair_of_statuses_is_either_legal_or_refused_with_the_legal_ones() -> None:
    for label, current, new in product(LABELS.values(), STATUSES, STATUSES):
        if current in label.statuses and new in label.transitions[current]:
            check_transition(label, current, new)
            continue
        with pytest.raises(VocabularyError) as caught:
            check_transition(label.name, current, new)
        expected = label.transitions[current] if current in label.statuses else label.statuses
        assert caught.value.allowed == expected
        assert all(status in caught.value.detail for status in expected)


def test_the_tables_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        LABELS["Fact"] = LABELS["Attribute"]  # type: ignore[index]  # that it can't be done is the point
    with pytest.raises(TypeError):
        LABELS["Goal"].transitions["active"] = ()  # type: ignore[index]  # the same


def test_check_label_answers_the_row() -> None:
    assert check_label("Attribute") is LABELS["Attribute"]


@pytest.mark.parametrize("name", ["attribute", "PREFERENCE", "Prefrence", "Goals"])
def test_a_near_label_is_suggested(name: str) -> None:
    with pytest.raises(VocabularyError) as caught:
        check_label(name)
    assert caught.value.field == "label"
    assert caught.value.did_you_mean in LABELS
    assert caught.value.allowed == tuple(LABELS)


@pytest.mark.parametrize(
    ("retired", "successor"),
    [
        ("Fact", "Attribute"),
        ("observation", "Behavior"),
        ("PATTERN", "Insight"),
        ("Idea", "Reference"),
        ("Metric", "Attribute"),
        ("Emotion", None),
    ],
)
def test_a_retired_label_says_what_to_use(retired: str, successor: str | None) -> None:
    with pytest.raises(VocabularyError) as caught:
        check_label(retired)
    assert caught.value.did_you_mean == successor
    assert RETIRED_LABELS[retired.title()] in caught.value.detail


def test_a_metric_is_told_to_carry_its_origin() -> None:
    with pytest.raises(VocabularyError, match='origin: "health_import"'):
        check_label("Metric")


def test_check_status_names_the_labels_own_statuses() -> None:
    check_status("Goal", "completed")
    with pytest.raises(VocabularyError, match="status of Preference memories") as caught:
        check_status("Preference", "completed")
    assert caught.value.allowed == LABELS["Preference"].statuses
    with pytest.raises(VocabularyError) as caught:
        check_status(LABELS["Goal"], "complete")
    assert caught.value.did_you_mean == "completed"


def test_a_step_to_a_misspelt_status_suggests_the_legal_one() -> None:
    with pytest.raises(VocabularyError) as caught:
        check_transition("Goal", "active", "Completed")
    assert caught.value.did_you_mean == "completed"
    with pytest.raises(VocabularyError) as caught:
        check_transition("Goal", "completed", "abandoned")
    assert caught.value.did_you_mean is None
