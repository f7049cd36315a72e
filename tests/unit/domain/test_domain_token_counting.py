"""The estimate: counted by passes over classes of characters, and the same as by the expression that says the rule."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.token_counting import Tally, counter_of, estimate_json, estimate_tokens, weigh_text

PIECE = re.compile(
    "[A-Z]{1,2}(?![a-z])|[A-Za-z][a-z]{0,3}"
    "|[0-9]{1,2}| (?=[0-9])"
    "|[\u0080-\u058f]{1,2}|[\u0590-\U0010ffff]"
    "|[^A-Za-z0-9 \u0080-\U0010ffff]"
)
DEAR = re.compile("[\u0900-\u0dff\uac00-\ud7a3]")
DEAREST = re.compile("[\u200d\U00010000-\U0010ffff]")
STRUCTURE = re.compile(r'["\[\]{},:]{2,4}')

pieces = st.sampled_from(
    'aabcXYZ019  .,:[]{}"\\\n\t~?\x00\x7f\u00e9\u00ff\u0100\u0590\uac00\u0905\u4e2d\u200d\U0001f355'
)
words = st.lists(pieces | st.characters(exclude_categories=["Cs"]), max_size=60).map("".join)
exactly = settings(derandomize=True, database=None, deadline=None, max_examples=400)


def by_the_rule(text: str) -> int:
    counted = len(PIECE.findall(text)) + len(DEAR.findall(text)) // 3 + 2 * len(DEAREST.findall(text))
    return max(counted, -(-len(text.encode("utf-8", "surrogatepass")) // 4))


@exactly
@given(words)
def test_the_estimate_is_what_the_rule_says(text: str) -> None:
    assert estimate_tokens(text) == by_the_rule(text)


@exactly
@given(words)
def test_the_estimate_of_json_takes_marks_between_values_together(text: str) -> None:
    json = text.encode()
    assert estimate_json(json) == max(by_the_rule(STRUCTURE.sub('"', text)), -(-len(json) // 4))


@exactly
@given(st.lists(words, max_size=5))
def test_what_lines_weigh_adds_up(lines: list[str]) -> None:
    total = Tally(0)
    for line in lines:
        total = total.plus(weigh_text(f"{line}\n"))
    assert total.tokens == estimate_tokens("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"], ids=["lone", "between letters"])
def test_half_a_surrogate_pair_is_counted_and_no_error(text: str) -> None:
    assert estimate_tokens(text) == by_the_rule(text)


def test_a_counter_of_ones_own_counts_text_and_json() -> None:
    counter = counter_of("letters", len)
    assert counter.text("\u4e2d\u56fd").tokens == counter.json("\u4e2d\u56fd".encode()).tokens == 2
    assert not counter.sums
