"""Kinds of corrections: what may be said to be wrong with a memory, and what applying that does."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

CorrectionKind = Literal["replace_text", "wrong_label", "wrong_entity", "wrong_date", "dispute", "retract"]
CorrectionStatus = Literal["open", "applied", "rejected"]

CORRECTION_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "replace_text": "The text is wrong: a memory with the right one takes its place.",
        "wrong_label": "It is knowledge of another kind: a memory with the right label takes its place.",
        "wrong_entity": "It is about another entity: a memory that names the right one takes its place.",
        "wrong_date": "It happened, or holds, at another time: a memory with the right times takes its place.",
        "dispute": "It is doubtful: it is shown as disputed until somebody decides.",
        "retract": "It should not be known: it is withdrawn.",
    }
)
"""The kinds of corrections by name."""
