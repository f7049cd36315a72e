"""What is left of JSON that named a record or a user."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.erasure.scrubbing import holds_record_of, names_any, without_records, without_user

GONE = "01a22e74-1a10-72ed-93af-a78ea9eb9b57"
OTHER = "01a22e74-1a43-76a7-af24-874a8691d336"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"moved": [{"id": OTHER, "target_memory_id": GONE}, {"id": OTHER}]}, {"moved": [{"id": OTHER}]}),
        ({"added": [GONE, OTHER]}, {"added": [OTHER]}),
        ({"memories": [{"id": OTHER, "superseded_by": GONE}]}, {"memories": [{"id": OTHER, "superseded_by": None}]}),
        ({"by": GONE, "count": 2}, {"by": None, "count": 2}),
        ({"rejected": {"id": GONE, "text": "Once said."}}, {"rejected": {}}),
        ({"rejected": {"id": OTHER, "edges": [{"to": {"memory": GONE}}]}}, {"rejected": {"id": OTHER, "edges": []}}),
        ({"merged": [{"before": {"id": OTHER}, "gone": {"end": GONE}}]}, {"merged": []}),
        ({"reason": f"See {GONE}."}, {"reason": f"See {GONE}."}),
        ([[GONE], 1, None, True], [[], 1, None, True]),
    ],
    ids=["row", "id", "trace", "field", "itself", "edge-of-a-draft", "pair", "words", "nested"],
)
def test_what_names_a_record_goes_and_the_rest_stays(value: Any, kept: Any) -> None:
    assert without_records(value, {GONE}) == kept


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([GONE, OTHER, "ann", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "user_id", "users", "superseded_by", "rows"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values)
def test_nothing_names_the_record_afterwards(value: Any) -> None:
    kept = without_records(value, {GONE})
    assert not names_any(kept, {GONE})
    assert without_records(kept, {GONE}) == kept
    if not names_any(value, {GONE}):
        assert kept == value


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"user_id": "ann", "text": "ann"}, {"user_id": None, "text": "ann"}),
        ({"audiences": [{"users": ["ann", "bob"]}]}, {"audiences": [{"users": ["bob"]}]}),
        ({"readers": {"users": ["annette"]}}, {"readers": {"users": ["annette"]}}),
        (["ann"], ["ann"]),
    ],
    ids=["field", "list", "another", "word"],
)
def test_a_user_goes_from_fields_of_users_alone(value: Any, kept: Any) -> None:
    assert without_user(value, "ann") == kept


def test_a_whole_record_of_a_user_is_known_by_its_id_and_owner() -> None:
    assert holds_record_of({"from": [{"id": OTHER, "user_id": "ann", "name": "Bakery"}]}, "ann")
    assert not holds_record_of({"from": [{"id": OTHER, "user_id": "bob"}], "user_id": "ann"}, "ann")
