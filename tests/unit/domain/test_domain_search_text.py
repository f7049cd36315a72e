# ruff: noqa: RUF001 - letters of other scripts are the point

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.search_text import search_text

exactly = settings(derandomize=True, database=None, deadline=None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Who played", "the who played"),
        ("東京大学", "東京 京大 大学"),
        ("京", "京"),
        ("東京タワーで meet", "東京 京タ タワ ワー ーで meet"),
        ("김민수가 왔다", "김민 민수 수가 왔다"),
        ("สวัสดี", "สวั วัส สดี"),
        ("ｼﾞｮﾝ", "ジョ ョン"),
        ("bob.Smith@acme.com", "bob.smith@acme.com bob.smith acme.com bob smith acme com"),
        ("src/memory_os/app.py", "src/memory_os/app.py memory_os app.py src memory os app py"),
        ("well-known", "well-known well known"),
        ("getHTTPResponse", "gethttpresponse get http response"),
        ("UA123 Room 101", "ua123 room 101"),
        ("C++ C# C", "c++ cplusplus c# csharp c"),
        ("Ｆｕｌｌ ÅNGSTRÖM A\u030a", "full ångström å"),
        ("zero\u200bwidth so\u00adft", "zero width soft"),
        ("nul\x00nul \ud800", "nul nul"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("a _ b", "a _ b"),
        (" " * 10_000, ""),
        ("", ""),
        ("???", "???"),
    ],
)
def test_words_for_search(text: str, words: str) -> None:
    assert search_text(text) == words


@exactly
@given(st.text(st.characters()), st.text(st.characters()))
def test_any_text_becomes_clean_words_and_each_part_adds_its_own(left: str, right: str) -> None:
    both = search_text(f"{left} {right}")
    assert both == " ".join(part for part in (search_text(left), search_text(right)) if part)
    assert "\x00" not in both
    both.encode()
    assert both == " ".join(both.split())


@exactly
@given(st.text("東京大学北가나ไป", min_size=2, max_size=10), st.text("東京大学北가나ไป", max_size=5))
def test_what_is_inside_an_unspaced_text_is_found_by_its_pairs(inner: str, around: str) -> None:
    if not around.endswith("ไ") and not inner.startswith("\u0e31"):
        assert set(search_text(inner).split()) <= set(search_text(around + inner + around).split())


@pytest.mark.parametrize("text", [chr(one) + chr(other) for one in range(32, 127) for other in (32, 95, 46, 97)])
def test_no_printable_pair_fails(text: str) -> None:
    assert search_text(f"a {text} b").startswith("a")


@pytest.mark.parametrize("piece", ["A", "aB", "a.", "東", "\u0e01\u0e31", "_", "A ", "\u0301", "("])
def test_hostile_texts_take_linear_time(piece: str) -> None:
    started = process_time()
    search_text(piece * (100_000 // len(piece)))
    assert process_time() - started < 10
