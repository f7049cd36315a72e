"""Whether a question asks for a relation: by its words, in whatever form, or by asking why."""

from __future__ import annotations

import pytest

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.relations import ASKED_BY, asks_for, question_stems


@pytest.mark.parametrize(
    ("question", "relation"),
    [
        ("What supports the plan?", "SUPPORTS"),
        ("Which findings SUPPORTED it?", "SUPPORTS"),
        ("What contradicts this?", "CONTRADICTS"),
        ("Why did Ada move?", "MOTIVATED_BY"),
        ("Why did it break?", "CAUSED_BY"),
        ("What was the reason?", "CAUSED_BY"),
        ("Who owns the oven?", "owned by"),
        ("Wo ist der Motor?", "Motor"),
    ],
)
def test_a_question_asks_for_a_relation_in_any_form_of_its_words(question: str, relation: str) -> None:
    assert asks_for(question_stems(question), relation)


@pytest.mark.parametrize(
    ("question", "relation"),
    [
        ("What contradicts this?", "SUPPORTS"),
        ("Who was it by?", "CAUSED_BY"),  # function words name no relation
        ("What did Ada do?", "MOTIVATED_BY"),
        ("Why did it break?", "SUPPORTS"),
        ("What supports the plan?", ""),
        ("", "SUPPORTS"),
    ],
)
def test_other_words_ask_for_nothing(question: str, relation: str) -> None:
    assert not asks_for(question_stems(question), relation)


def test_what_is_asked_for_by_other_words_are_types_that_there_are() -> None:
    assert {kind for kinds in ASKED_BY.values() for kind in kinds} <= set(EDGE_TYPES)
