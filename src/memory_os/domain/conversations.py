"""What the turns of a conversation tell beside their words: who speaks, what asks, what names a time. No I/O.

Speakers are read from the usual form of a transcript, `Name: what was said`. The words of time are English; in another
language that hint is missing, and nothing else changes.
"""

from __future__ import annotations

import re
from typing import Final

MOST_SPEAKER_CHARS: Final = 60
"""Longest name before a colon that is taken for a speaker's."""

_speaker = re.compile(rf"\s*([^\s:][^:\n]{{0,{MOST_SPEAKER_CHARS - 1}}}):\s")
_question_marks = ("?", "\uff1f", "\u061f")
_ends = ".!?\u3002\uff01\uff1f\u061f\u0964"
_sentence = re.compile(f"[^{_ends}]+[{_ends}]*")
_asks_when = re.compile(r"\b(?:when|how long|(?:what|which) (?:date|year|month|day))\b", re.IGNORECASE)
_time = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|january|february|march|april|june|july|august|september|october|november|december|recently|morning|since"
    r"|days?|weeks?|months?|years?|[12]\d\d\d|soon|just)\b",
    re.IGNORECASE,
)


def speaker_of(turn: str) -> str | None:
    """Who speaks, as the turn's own beginning says; None where it does not."""
    found = _speaker.match(turn)
    return found[1].strip() if found else None


def names_speaker(question: str, turn: str) -> bool:
    """Whether a question names who speaks."""
    speaker = speaker_of(turn)
    return speaker is not None and re.search(rf"\b{re.escape(speaker)}\b", question, re.IGNORECASE) is not None


def utterance_of(turn: str) -> str:
    """What is said, without its speaker."""
    found = _speaker.match(turn)
    return turn[found.end() :] if found else turn


def asking_share(turn: str) -> float:
    """The share of a turn's sentences that ask (0..1): what asks is followed by the answer, and is none itself."""
    sentences: list[str] = [sentence.strip() for sentence in _sentence.findall(utterance_of(turn).strip())]
    if not sentences:
        return 0.0
    return sum(1 for sentence in sentences if sentence.endswith(_question_marks)) / len(sentences)


def asks_when(question: str) -> bool:
    """Whether a question asks for a time."""
    return _asks_when.search(question) is not None


def names_time(turn: str) -> bool:
    """Whether what is said names a time, also a relative one."""
    return _time.search(utterance_of(turn)) is not None
