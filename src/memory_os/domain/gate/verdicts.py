"""What the guard is asked about, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

Verdict = Literal["merge", "distinct", "review", "supersede", "contradict"]

RULES: Final[Mapping[str, str]] = {
    "exact": "the texts are equal but for white space, case and typography",
    "aligned": "nothing conflicts, and every content word has its partner on the other side",
    "aligned_loosely": "nothing conflicts, what is left over carries little, and the similarity is above the threshold",
    "other_subject": "the two are about different subjects",
    "other_property": "the two are about different properties of one subject",
    "new_value": "the same subject and property have a new value",
    "other_occasion": "two events at different times",
    "question": "one asks what the other states",
    "roles_exchanged": "the same words, but who does what to whom is exchanged",
    "order_reversed": "the order or the comparison is reversed",
    "ended": "one says that what the other states has ended",
    "was_and_never": "one says that something used to be, the other that it never was",
    "number_changed": "a number, amount, date or time differs",
    "other_number": "a number that names something, or belongs to an event, differs",
    "name_changed": "another name holds the same place",
    "other_name": "different names or identifiers",
    "negated": "one states what the other denies",
    "opposite": "the two hold opposite words of the same thing",
    "other_direction": "a word that names another thing, side or event",
    "other_object": "the same sentence about another object",
    "unproven": "near, but not proven to say the same",
    "too_long": "near, but too long to be compared word by word",
    "far": "nothing speaks for the two saying the same",
}
"""Every rule that can decide, and what it says."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A memory as the guard sees it; `subject` and `property` count only where both sides name both."""

    text: str
    label: str
    subject: str | None = None
    property: str | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was decided.

    Attributes:
        verdict: What to do with the new memory.
        rule: The key in `RULES` that decided.
        guard: Every finding, short, such as "number: 178 / 182".
    """

    verdict: Verdict
    rule: str
    guard: tuple[str, ...]
