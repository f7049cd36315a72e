"""Closed vocabularies refuse what they don't know, in a form that a model can correct itself from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_NEAR: Final = 0.75
"""How alike two names must be (difflib's ratio) to suggest one for the other.

Ours: difflib's own 0.6 suggests COMMITTED_TO for MARRIED_TO; slips of the pen and inflections lie above 0.75.
"""

_LONGEST: Final = 64
"""No name of ours is half as long; a longer value is not compared and is shown shortened."""

_joints = re.compile(r"[\s\-_]+")


class VocabularyError(ValueError):
    """A value outside a closed vocabulary, or a step that the vocabulary does not allow.

    Attributes:
        field: What was asked for, for example `label`.
        value: What was given.
        allowed: Every value that would have been accepted, in the vocabulary's order.
        did_you_mean: One of `allowed` that can be put in place of `value` as it stands, or None.
        detail: The whole refusal as sentences.
    """

    def __init__(
        self, *, field: str, value: str, allowed: Iterable[str], did_you_mean: str | None, detail: str
    ) -> None:
        super().__init__(detail)
        self.field = field
        self.value = value
        self.allowed = tuple(allowed)
        self.did_you_mean = did_you_mean
        self.detail = detail


def suggest(value: str, allowed: Iterable[str]) -> str | None:
    """The nearest of `allowed`, or None if none is near. Case does not count, spaces and hyphens are underscores."""
    if len(value) > _LONGEST:
        return None
    names = {_fold(name): name for name in allowed}
    near = get_close_matches(_fold(value), names, n=1, cutoff=_NEAR)
    return names[near[0]] if near else None


def refuse(field: str, value: str, allowed: Iterable[str], *, noun: str | None = None) -> VocabularyError:
    """The error for a value that is not in a vocabulary: names it, suggests the nearest, lists all."""
    allowed = tuple(allowed)
    near = suggest(value, allowed)
    hint = f" Did you mean {near}?" if near else ""
    detail = f"{show(value)} is not a {noun or field}.{hint} Allowed: {', '.join(allowed)}."
    return VocabularyError(field=field, value=value, allowed=allowed, did_you_mean=near, detail=detail)


def show(value: str) -> str:
    """A value as it may stand in a sentence: quoted, printable, not longer than a name."""
    return repr(value if len(value) <= _LONGEST else value[:_LONGEST] + "...")


def _fold(name: str) -> str:
    return _joints.sub("_", name.strip().casefold())
