from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import uuid4

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_os.domain.own_packs import is_own_pack
from memory_os.domain.packing import PackItem, render_markdown
from memory_os.retrieval.model import ContextPack, GraphState
from memory_os.retrieval.model import PackItem as JsonItem

exactly = settings(derandomize=True, database=None, deadline=None)

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def markdown(text: str = "A fact.") -> str:
    why = ("query -> Ada -ABOUT-> stove", "shares words with the question")
    item = PackItem(
        "memory", str(uuid4()), "Preference", text=text, score=0.5, arms={"text": 1, "graph": 2}, why=why, date=NOW
    )
    return render_markdown([item, item], graph="current")


def answer(text: str = "A fact.", rendered: str | None = None) -> str:
    item = JsonItem(
        type="memory",
        id=uuid4(),
        label="Attribute",
        text=text,
        date=NOW,
        status="active",
        valid_from=None,
        valid_to=None,
        confidence=0.5,
        score=0.51,
        arms={"text": 1},
        why=["shares words with the question"],
    )
    pack = ContextPack(
        retrieval_id=uuid4(),
        items=[item],
        omitted=[],
        omitted_count=0,
        conflicts=[],
        graph=GraphState("current", 0, 7),
        no_match=False,
        markdown=rendered,
        timings_ms={"total": 1.0},
    )
    return msgspec.json.encode(pack).decode()


def test_a_pack_as_markdown_is_recognised_however_it_comes_back() -> None:
    pack = markdown()
    lines = pack.splitlines()
    forms = {
        "as it is": pack,
        "empty": render_markdown([]),
        "with words around": f"Here is what I recalled:\n\n{pack}\nSo I conclude that it is so.",
        "quoted": "> " + pack.replace("\n", "\n> "),
        "quoted twice, indented": "\n".join(f"  > > {line}" for line in lines),
        "in a fence": f"````markdown\n{pack}````",
        "on one line": " ".join(pack.split()),
        "with other line ends": pack.replace("\n", "\r\n"),
        "without the marker": pack.split("\n", 1)[1],
        "without the head": "\n".join(lines[5:]),
        "a record without its fence": "\n".join(line for line in lines[7:] if "```" not in line),
        "as a JSON string": json.dumps({"text": pack}),
        "as a JSON string in another": json.dumps(json.dumps({"text": pack})),
    }
    assert [form for form, text in forms.items() if not is_own_pack(text)] == []


def test_a_pack_as_json_is_recognised_however_it_comes_back() -> None:
    pack = answer()
    document = json.loads(pack)
    forms = {
        "as it is": pack,
        "indented": json.dumps(document, indent=2),
        "sorted": json.dumps(document, sort_keys=True),
        "in a fence, with words": f"The tool said:\n```json\n{pack}\n```\nThat is all.",
        "quoted": "> " + json.dumps(document, indent=2).replace("\n", "\n> "),
        "as a string": json.dumps({"result": pack}),
        "as Python prints it": str(document),
        "its items": json.dumps(document["items"]),
        "one item": json.dumps(document["items"][0], indent=1),
        "cut off": pack[:-40],
        "with Markdown inside": answer(rendered=markdown()),
    }
    assert [form for form, text in forms.items() if not is_own_pack(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A fact.",
        "We use Memory OS context packs.",
        "# Memory OS context pack\n\nNotes on how we want it to look.",
        "Every pack begins with `<!-- memory-os:context-pack/1 -->`, and each record is fenced as memory-os-record.",
        "Records from memory are fenced as data.",
        "```python\nx\n```",
        "<!-- a comment -->",
        '{"items": [], "retrieval_id": 1}',
        'An answer has "retrieval_id", "omitted_count" and "no_match"; log all three.',
        '"why": ["it rains"], "score": 3',
        "The final score: 0.5000 (text 1) was low. Why: nobody knows.",
        "Ask why: query -> plan -> rows.",
    ],
)
def test_what_only_names_the_words_is_none(text: str) -> None:
    assert not is_own_pack(text)


@exactly
@given(st.text(max_size=200))
def test_every_pack_is_recognised_whatever_it_holds(text: str) -> None:
    assert is_own_pack(markdown(text))
    assert is_own_pack(answer(text.encode("utf-8", "replace").decode()))


@exactly
@given(
    st.lists(st.sampled_from(["{", "}", '"', "'", "\\", "score: ", "why: ", "`", "\n", "> ", "a ", "0.1234 (text 1) "]))
)
def test_pieces_of_packs_take_no_time(pieces: list[str]) -> None:
    is_own_pack("".join(pieces) * 200)
