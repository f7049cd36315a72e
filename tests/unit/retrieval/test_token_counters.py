"""TOKEN_COUNTER: what it may name, what is refused at the start, and that budgets hold by whatever counts."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.retrieval.test_retrieval_packing import GRAPH, TIMINGS, candidate, texts

from memory_os.domain.token_counting import ESTIMATE, TokenCounter, counter_of, estimate_tokens
from memory_os.errors import StartupError
from memory_os.retrieval.model import ContextPack, Limits, RetrievalRequest
from memory_os.retrieval.packing import make_pack
from memory_os.retrieval.token_counters import load_counter

OWN: Final = "tests.fixtures.counting"
COUNTERS: Final = {name: load_counter(f"{OWN}:{name}") for name in ("characters", "words", "dearer_the_longer")} | {
    "estimate": ESTIMATE
}
PAIR: Final = (UUID(int=1), UUID(int=2))


def packed(counter: TokenCounter, contents: list[str], budget: int, form: Any, limit: int) -> tuple[ContextPack, int]:
    request = RetrievalRequest(query="q", budget_tokens=budget, limits=Limits(memories=limit), format=form)
    found = [candidate(number, text, path=True, cited=True) for number, text in enumerate(contents, start=1)]
    made = make_pack(found, [PAIR], GRAPH, request, [], counter)
    return made.finish(UUID(int=99), dict(TIMINGS)), made.tokens


def counted(counter: TokenCounter, pack: ContextPack, *, bare: bool = False) -> int:
    if pack.markdown is not None:
        return counter.text(pack.markdown).tokens
    fields = msgspec.json.decode(msgspec.json.encode(pack))
    left_out = {"retrieval_id", "timings_ms"} if bare else set()
    return counter.json(msgspec.json.encode({name: fields[name] for name in fields if name not in left_out})).tokens


@settings(max_examples=150, deadline=None)
@given(
    contents=texts,
    budget=st.one_of(st.integers(1, 1_500), st.integers(1, 32_000)),
    name=st.sampled_from(sorted(COUNTERS)),
    form=st.sampled_from(["json", "markdown"]),
    limit=st.integers(0, 14),
)
def test_the_budget_holds_by_the_counter_that_is_set(
    *, contents: list[str], budget: int, name: str, form: str, limit: int
) -> None:
    counter = COUNTERS[name]
    pack, tokens = packed(counter, contents, budget, form, limit)
    assert len(pack.items) + pack.omitted_count == len(contents)
    if pack.items:
        assert tokens <= budget
        bare = not any(item.path or item.why for item in pack.items)
        assert counted(counter, pack, bare=bare) <= budget
    if form == "markdown" and counter.sums:
        assert counted(counter, pack) == tokens


@pytest.mark.parametrize("form", ["json", "markdown"])
@pytest.mark.parametrize("name", sorted(COUNTERS))
def test_a_budget_that_is_wide_enough_takes_all_of_it(name: str, form: str) -> None:
    pack, tokens = packed(COUNTERS[name], ["One fact.", "Another."], 32_000, form, 8)
    assert [item.id.int for item in pack.items] == [1, 2]
    assert all(item.path and item.source and item.source.quote for item in pack.items)
    assert 0 < tokens <= 32_000


def test_the_estimate_is_the_default_and_a_function_counts_for_itself() -> None:
    assert load_counter("estimate") is ESTIMATE
    counter = load_counter(f"{OWN}:characters")
    assert counter.name == f"{OWN}:characters"
    assert counter.text("four").tokens == counter.json(b"four").tokens == 4


@pytest.mark.parametrize(
    ("setting", "mend"),
    [
        ("guess", "none of estimate, tiktoken:ENCODING and module:function"),
        ("os.system", "none of estimate"),
        ("a:b:c", "none of estimate"),
        ("no_such_module:count", "is it on PYTHONPATH"),
        (f"{OWN}:absent", "has no function absent"),
        (f"{OWN}:NOT_CALLABLE", "has no function NOT_CALLABLE"),
        (f"{OWN}:nothing", "must answer a whole number of tokens that grows with the text"),
        (f"{OWN}:fraction", "must answer a whole number"),
        (f"{OWN}:failing", "fails with RuntimeError"),
    ],
)
def test_what_does_not_count_is_refused_with_its_mend(setting: str, mend: str) -> None:
    with pytest.raises(StartupError, match=mend) as caught:
        load_counter(setting)
    assert str(caught.value).startswith("TOKEN_COUNTER: ")


class _Encoding:
    def encode(self, text: str, *, disallowed_special: tuple[str, ...]) -> list[str]:
        assert disallowed_special == ()
        return text.split()


def _tiktoken(fault: Exception | None) -> ModuleType:
    module = ModuleType("tiktoken")

    def get_encoding(name: str) -> _Encoding:
        if fault is not None:
            raise fault
        assert name == "o200k_base"
        return _Encoding()

    module.get_encoding = get_encoding  # type: ignore[attr-defined]  # a stand-in for the package
    module.list_encoding_names = lambda: ["cl100k_base", "o200k_base"]  # type: ignore[attr-defined]
    return module


def test_tiktoken_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", _tiktoken(None))
    assert load_counter("tiktoken:o200k_base").text("three <|endoftext|> words").tokens == 3


@pytest.mark.parametrize(
    ("fault", "mend"),
    [
        (ValueError("unknown"), "knows no encoding 'o200k_base', but cl100k_base, o200k_base"),
        (ConnectionError("offline"), "fetches its tables at first use; set TIKTOKEN_CACHE_DIR"),
    ],
    ids=["unknown", "offline"],
)
def test_tiktoken_that_cannot_load_says_why(fault: Exception, mend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", _tiktoken(fault))
    with pytest.raises(StartupError, match=mend):
        load_counter("tiktoken:o200k_base")


def test_tiktoken_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(StartupError, match="pip install tiktoken"):
        load_counter("tiktoken:o200k_base")


def test_a_slow_counter_is_asked_for_parts_and_once_for_the_whole() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return estimate_tokens(text)

    packed(counter_of("slow", count), ["A fact of some words."] * 14, 4_000, "json", 8)
    records = [text for text in asked if "A fact of some words." in text]
    assert len(records) == len(set(records)) == 8 + 1
    assert len(asked) <= 12
