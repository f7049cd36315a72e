from __future__ import annotations

from collections import Counter

import pytest

from memory_os.domain.edge_types import EDGE_TYPES, REFUSED_EDGE_TYPES, check_edge_type
from memory_os.domain.vocabulary import VocabularyError

SEED = (
    "MOTIVATED_BY CAUSED_BY ENABLES BLOCKS REQUIRES PART_OF SUPPORTS CONTRADICTS INFLUENCES COMMITTED_TO"
    " FOLLOWED_THROUGH ADVANCES TAGGED_WITH ABOUT EVOLVED_INTO SUPERSEDES DUPLICATES EXTRACTED_FROM"
)


def refusal(name: str) -> VocabularyError:
    with pytest.raises(VocabularyError) as caught:
        check_edge_type(name)
    assert caught.value.field == "type"
    assert caught.value.allowed == tuple(EDGE_TYPES)
    assert all(edge_type in caught.value.detail for edge_type in EDGE_TYPES)
    return caught.value


def test_there_are_the_eighteen_types_of_the_seed() -> None:
    assert tuple(EDGE_TYPES) == tuple(SEED.split())
    assert Counter(row.category for row in EDGE_TYPES.values()) == {
        "motivation and causation": 2,
        "structural": 4,
        "knowledge": 3,
        "goal and commitment": 3,
        "organization": 2,
        "lifecycle": 3,
        "provenance": 1,
    }
    assert all(row.name == name and row.meaning for name, row in EDGE_TYPES.items())


def test_all_but_three_migrate_on_supersession() -> None:
    assert {name for name, row in EDGE_TYPES.items() if not row.migrates} == {
        "EXTRACTED_FROM",
        "SUPERSEDES",
        "DUPLICATES",
    }


def test_the_four_protected_types_are_those_of_the_design() -> None:
    assert {name for name, row in EDGE_TYPES.items() if row.protected} == {
        "EXTRACTED_FROM",
        "SUPERSEDES",
        "COMMITTED_TO",
        "EVOLVED_INTO",
    }


@pytest.mark.parametrize("name", SEED.split())
def test_each_type_is_accepted_in_capitals_and_suggested_otherwise(name: str) -> None:
    assert check_edge_type(name) is EDGE_TYPES[name]
    assert refusal(name.lower()).did_you_mean == name
    assert refusal(name.replace("_", " ").title() + " ").did_you_mean == name


@pytest.mark.parametrize(
    "name",
    [
        *REFUSED_EDGE_TYPES,
        "RELATED_TO",
        "relates to",
        "IS_RELATED_TO",
        "RELATION",
        "LINKS_TO",
        "co-referenced-with",
        "COREFERENCED",
        "MENTIONED_IN",
    ],
)
def test_types_that_claim_nothing_are_refused_with_a_reason_and_no_suggestion(name: str) -> None:
    error = refusal(name)
    assert error.did_you_mean is None
    assert any(reason in error.detail for reason in REFUSED_EDGE_TYPES.values())


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("SUPPORT", "SUPPORTS"),
        ("DEPENDS_ON", "REQUIRES"),
        ("depends on", "REQUIRES"),
        ("IMPACTS", "INFLUENCES"),
        ("REPLACES", "SUPERSEDES"),
        ("UNBLOCKS", "ENABLES"),
        ("EXTRACTED", "EXTRACTED_FROM"),
        ("COMMITS_TO", "COMMITTED_TO"),
    ],
)
def test_the_same_claim_under_another_name_is_suggested(name: str, meant: str) -> None:
    error = refusal(name)
    assert error.did_you_mean == meant
    assert f"Did you mean {meant}?" in error.detail


@pytest.mark.parametrize(
    ("name", "turned"),
    [("SUPERSEDED_BY", "SUPERSEDES"), ("CAUSES", "CAUSED_BY"), ("blocked by", "BLOCKS"), ("HAS_PART", "PART_OF")],
)
def test_a_claim_read_backwards_is_explained_and_never_suggested(name: str, turned: str) -> None:
    error = refusal(name)
    assert error.did_you_mean is None
    assert f"Use {turned} with from and to exchanged." in error.detail


@pytest.mark.parametrize(
    "name",
    [
        "MARRIED_TO",
        "WORKS_AT",
        "LIKES",
        "UNSUPPORTS",
        "NOT_SUPPORTS",
        "DISABLES",
        "TAGGED_BY",
        "MOTIVATED",
        "",
        pytest.param("x" * 9**6, id="long"),
    ],
)
def test_what_only_looks_alike_or_says_the_opposite_gets_no_suggestion(name: str) -> None:
    error = refusal(name)
    assert error.did_you_mean is None
    assert len(error.detail) < 500
