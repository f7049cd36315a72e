"""What a chat endpoint answers, judged: a title and a text that can stand beside the memories they were made of.

No message made here repeats the reply's text: endpoints echo the key and the input.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import msgspec

from memory_os.domain.cycles.insights import LONGEST_TITLE, Summary, cut
from memory_os.domain.own_packs import is_own_pack
from memory_os.domain.pack_markdown import FENCE_INFO
from memory_os.domain.shapes import check_text
from memory_os.writing.port import WriterError
from memory_os.writing.prompt import FENCE

LONGEST_TEXT: Final = 2_000
"""Characters of a text; a model that says more was asked for less, and has not summed up."""

LONGEST_RAW_TITLE: Final = 400
"""Characters of a title that is still cut to what one may have."""

_MARKERS: Final = re.compile(rf"```|~~~|<\||\|>|<!--|{FENCE}|{FENCE_INFO}|memory-os:context-pack", re.IGNORECASE)
"""What fences data, here and in packs, and what turns of a conversation are told apart by."""


class PassingFaultError(WriterError):
    """A fault that may be gone at the next try.

    Attributes:
        retry_after: Seconds that the endpoint asked to wait, or None.
    """

    def __init__(self, problem: str, *, retry_after: float | None = None) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


class RefusedError(WriterError):
    """The endpoint finds the request wrong (400, 422): it may not know some field of it."""


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Reply(msgspec.Struct):
    choices: list[_Choice]


class _Written(msgspec.Struct):
    title: str
    text: str


def read_summary(body: bytes) -> Summary:
    """Read the body of a 200.

    Raises:
        PassingFaultError: It is cut off, or no JSON.
        WriterError: It has another shape, or a title or text that can't be used.
    """
    try:
        reply = msgspec.json.decode(body, type=_Reply)
    except msgspec.ValidationError:
        raise WriterError("the summary endpoint's reply doesn't have the shape of a chat completion") from None
    except (msgspec.DecodeError, RecursionError):
        raise PassingFaultError("the summary endpoint's reply is cut off or isn't JSON") from None
    if not reply.choices or not reply.choices[0].message.content:
        raise WriterError("the summary endpoint answered no text")
    if reply.choices[0].finish_reason == "length":
        raise WriterError("the summary endpoint's model ran out of tokens")
    try:
        written = msgspec.json.decode(reply.choices[0].message.content, type=_Written)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        raise WriterError("the summary endpoint's model didn't answer with a title and a text as JSON") from None
    return check_summary(written.title, written.text)


def check_summary(title: str, text: str) -> Summary:
    """What a model wrote as it can be used: lines without margins, a title of one line.

    Raises:
        WriterError: It is blank or too long, holds what fences data, or characters that nothing can show or store.
    """
    title = " ".join(title.split())
    text = "\n".join(line for line in (" ".join(one.split()) for one in text.splitlines()) if line)
    if not title or not text:
        raise WriterError("the summary endpoint's model wrote nothing")
    if len(title) > LONGEST_RAW_TITLE or len(text) > LONGEST_TEXT:
        raise WriterError(f"the summary endpoint's model wrote more than {LONGEST_TEXT} characters")
    for said in (title, text):
        if check_text(said) or any(unicodedata.category(one) == "Cc" and one != "\n" for one in said):
            raise WriterError("the summary endpoint's model wrote characters that can't be stored")
        if _MARKERS.search(said) or is_own_pack(said):
            raise WriterError("the summary endpoint's model repeated what fences data")
    return Summary(cut(title, LONGEST_TITLE), text)
