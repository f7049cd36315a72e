"""Recognising our own context packs: what memory has shown is no new evidence for anything."""

from __future__ import annotations

import re
from typing import Final

from memory_os.domain.pack_markdown import FENCE_INFO, PREAMBLE

_ARMS: Final = "(?:graph|rerank|text|vector)"
_UUID: Final = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

_line_marks = re.compile(r"^[ \t>|*+-]+", re.MULTILINE)
_written_out = re.compile(r"\\+[nrt]")
_escaped_quotes = re.compile(r"\\*[\"']")

_heading, _, _promise = PREAMBLE.lstrip("# ").partition("\n")

_preamble = re.compile(rf"{re.escape(_heading)}\W+{re.escape(_promise.rstrip('.'))}")
_fence = re.compile(rf"[`~]{{3,}} ?{FENCE_INFO} id: \S")
_record = re.compile(
    rf"\bscore: \d+\.\d{{4}} (?:\({_ARMS} \d+(?:, {_ARMS} \d+)*\) )?"
    r".{0,2000}?\bwhy: (?:query -> |shares |stands beside )"
)
"""Of a record that has lost its fence: what it was ranked by, and some fields later why."""

_answer = re.compile(rf'"retrieval_id" ?: ?"{_UUID}"')
_answer_fields = re.compile(r'"omitted_count" ?: ?\d|"no_match" ?: ?(?:true|false|True|False)')
_item_fields = (
    re.compile(rf'"arms" ?: ?\{{ ?(?:"{_ARMS}" ?: ?\d|\}})'),
    re.compile(r'"why" ?: ?\[ ?"'),
    re.compile(r'"score" ?: ?-?\d'),
)


def is_own_pack(text: str) -> bool:
    """Whether a text is, or holds, a context pack of ours or a record of one, as Markdown or JSON.

    White space, quoting with `> `, fences around it, text before and after, escaped quotes and single ones make no
    difference. A text that only names a marker, a heading or a field is none: what is looked for is what a pack has
    *together*.
    """
    plain = _flatten(text)
    if _preamble.search(plain) or _fence.search(plain) or _record.search(plain):
        return True
    if _answer.search(plain) and _answer_fields.search(plain):
        return True
    return all(field.search(plain) for field in _item_fields)


def _flatten(text: str) -> str:
    """The text as one line without what quoting adds, every quotation mark a plain double one."""
    text = _line_marks.sub("", _written_out.sub("\n", text))
    return " ".join(_escaped_quotes.sub('"', text).split())
