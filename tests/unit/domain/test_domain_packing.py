from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.packing import (
    Omission,
    PackItem,
    PackSource,
    estimate_tokens,
    fit,
    render_markdown,
    shorten,
)
from memory_os.domain.token_counting import ESTIMATE, Tally

exactly = settings(derandomize=True, database=None, deadline=None)
texts = st.text(st.sampled_from("aB1 .。!\n가é🍕<`\u202e") | st.characters(exclude_categories=["Cs"]), max_size=120)


def render_json(items: Sequence[PackItem], omitted: Sequence[Omission]) -> str:
    rows = [asdict(item) for item in items]
    few = [left.reason for left in omitted[:3]]
    return json.dumps({"items": rows, "omitted": few, "omitted_count": len(omitted)}, default=str)


def memory(ident: str, text: str, **more: object) -> PackItem:
    return PackItem("memory", ident, "Preference", text=text, **more)  # type: ignore[arg-type]  # the tests' own fields


class Rendered:
    """Weighs a pack by serializing it: slow, and right by its making."""

    counter = ESTIMATE

    def __init__(
        self, render: Callable[[Sequence[PackItem], Sequence[Omission]], str], known: Sequence[Omission] = ()
    ) -> None:
        self.render, self.known = render, known

    def item(self, item: PackItem) -> Tally:
        return ESTIMATE.text(item.text)

    def pack(self, items: Sequence[PackItem], weight: Tally, left_out: int | None) -> int:
        del weight
        left = [] if left_out is None else [*self.known, *[Omission("x", "budget")] * left_out]
        return estimate_tokens(self.render(items, left))


MARKDOWN = Rendered(render_markdown)
SCALES = pytest.mark.parametrize("scale", [MARKDOWN, Rendered(render_json)], ids=["markdown", "json"])


def test_the_estimate_by_hand() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a cat sat") == 3
    assert estimate_tokens("2026") == 2
    assert estimate_tokens("北京大学") == 4
    assert estimate_tokens("🍕") == 3
    assert estimate_tokens(" " * 400) == 100


@exactly
@given(texts, texts)
def test_the_estimate_is_conservative_and_grows_with_the_text(text: str, more: str) -> None:
    assert estimate_tokens(text) >= len(text.encode()) / 4
    assert estimate_tokens(text) <= estimate_tokens(text + more)
    assert estimate_tokens(text + more) <= estimate_tokens(text) + estimate_tokens(more) + 2


@pytest.mark.parametrize("text", ["北京大学今天开会。明天休息。", "東京タワー", "김민수가 왔다. 갔다.", "ไปตลาด"])
def test_cjk_counts_each_letter(text: str) -> None:
    assert estimate_tokens(text) >= sum(not character.isspace() for character in text)


def test_shorten_cuts_at_sentences_in_any_script() -> None:
    assert shorten("One fact. Another fact. A third.", 7) == "One fact. Another fact."
    assert shorten("今日は晴れ。明日は雨。", 8) == "今日は晴れ。"
    assert shorten("राम गया। श्याम आया।", 12) == "राम गया।"
    assert shorten("whole", 100) == "whole"
    assert shorten("one sentence without an end", 3) == ""
    assert shorten("anything", 0) == shorten("", 0) == shorten("anything", -5) == ""


@exactly
@given(texts, st.integers(0, 40))
def test_shortened_texts_fit_and_are_beginnings(text: str, budget: int) -> None:
    short = shorten(text, budget)
    assert text.startswith(short)
    assert estimate_tokens(short) <= budget


@SCALES
def test_a_large_first_hit_does_not_end_packing(scale: Rendered) -> None:
    items = [memory("large", "x" * 5000), memory("fact", "短い事実。"), memory("other", "A fact.")]
    packed = fit(items, 400, scale)
    assert [item.id for item in packed.included] == ["fact", "other"]
    assert packed.omitted == (Omission("large", "budget"),)


@SCALES
def test_a_long_text_is_shortened_at_a_sentence(scale: Rendered) -> None:
    packed = fit([memory("long", "He likes pizza. " * 500)], 300, scale)
    (item,) = packed.included
    assert item.shortened
    assert item.text.endswith("pizza.")
    assert len(item.text) > 100


@SCALES
def test_long_metadata_counts(scale: Rendered) -> None:
    source = PackSource("s", "A long title " * 10, datetime(2026, 1, 1, tzinfo=UTC), "states", "A quote. " * 10)
    items = [memory(f"m{number}", "Short.", source=source, why=("query -> " + "a path " * 20,)) for number in range(50)]
    packed = fit(items, 500, scale)
    sent = scale.render(packed.included, packed.omitted)
    assert estimate_tokens(sent) == packed.tokens <= 500
    assert len(sent.encode()) <= 2000


@SCALES
@pytest.mark.parametrize("budget", [0, 1, 10])
def test_a_budget_below_the_empty_pack_leaves_all_out_and_says_so(scale: Rendered, budget: int) -> None:
    packed = fit([memory("a", "A."), memory("b", "B.")], budget, scale)
    assert packed.included == ()
    assert [left.id for left in packed.omitted] == ["a", "b"]


def test_the_budget_is_met_to_the_token() -> None:
    items = [memory("a", "A fact."), memory("b", "B fact.")]
    whole = fit(items, 10**6, MARKDOWN)
    assert whole.included == tuple(items)
    assert fit(items, whole.tokens, MARKDOWN).included == tuple(items)
    assert len(fit(items, whole.tokens - 1, MARKDOWN).included) == 1


def test_what_was_left_out_before_stays_first_in_the_note() -> None:
    known = [Omission("old", "superseded")]
    packed = fit([memory("a", "x" * 5000)], 200, Rendered(render_markdown, known), known)
    assert packed.omitted == (Omission("old", "superseded"), Omission("a", "budget"))


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        fit([], -1, MARKDOWN)


@SCALES
@exactly
@given(st.lists(texts, max_size=6), st.integers(0, 600))
def test_packs_keep_within_the_budget_lose_nothing_and_keep_the_order(
    scale: Rendered, contents: list[str], budget: int
) -> None:
    items = [memory(f"m{number}", text) for number, text in enumerate(contents)]
    packed = fit(items, budget, scale)
    included, omitted = [item.id for item in packed.included], [left.id for left in packed.omitted]
    assert sorted(included + omitted) == sorted(item.id for item in items)
    assert included == sorted(included)
    assert packed.tokens == estimate_tokens(scale.render(packed.included, packed.omitted))
    assert packed.tokens <= budget or not included
    for item in packed.included:
        assert contents[int(item.id[1:])].startswith(item.text)
        assert item.shortened == (item.text != contents[int(item.id[1:])])
