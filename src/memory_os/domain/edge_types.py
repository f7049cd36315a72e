"""The 18 edge types. A typed edge is a claim: its name says what is claimed, in the direction from -> to.

An edge type is added by adding a row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from memory_os.domain.vocabulary import VocabularyError, show, suggest

Category = Literal[
    "motivation and causation",
    "structural",
    "knowledge",
    "goal and commitment",
    "organization",
    "lifecycle",
    "provenance",
]


@dataclass(frozen=True, slots=True)
class EdgeType:
    """A claim that one record makes about another.

    Attributes:
        name: As clients write it.
        category: What kind of claim it is.
        migrates: On supersession the edge moves to the new memory; otherwise it stays on the old one, for audit.
        protected: Pruning and decay leave it alone.
        meaning: What the edge says, in a sentence.
    """

    name: str
    category: Category
    migrates: bool
    protected: bool
    meaning: str


_STAYING: Final = frozenset({"EXTRACTED_FROM", "SUPERSEDES", "DUPLICATES"})
_PROTECTED: Final = frozenset({"EXTRACTED_FROM", "SUPERSEDES", "COMMITTED_TO", "EVOLVED_INTO"})

_ROWS: Final[tuple[tuple[str, Category, str], ...]] = (
    ("MOTIVATED_BY", "motivation and causation", "From is done or wanted because of to."),
    ("CAUSED_BY", "motivation and causation", "From happened because of to."),
    ("ENABLES", "structural", "From makes to possible."),
    ("BLOCKS", "structural", "From stands in the way of to."),
    ("REQUIRES", "structural", "From needs to."),
    ("PART_OF", "structural", "From is a part of to."),
    ("SUPPORTS", "knowledge", "From is evidence for to."),
    ("CONTRADICTS", "knowledge", "From and to can't both hold."),
    ("INFLUENCES", "knowledge", "From changes how to turns out."),
    ("COMMITTED_TO", "goal and commitment", "From binds itself to to."),
    ("FOLLOWED_THROUGH", "goal and commitment", "From carried out what to promised."),
    ("ADVANCES", "goal and commitment", "From brings to closer."),
    ("TAGGED_WITH", "organization", "From is filed under to."),
    ("ABOUT", "organization", "From has to as its subject."),
    ("EVOLVED_INTO", "lifecycle", "From grew into to."),
    ("SUPERSEDES", "lifecycle", "From takes the place of to."),
    ("DUPLICATES", "lifecycle", "From says what to says."),
    ("EXTRACTED_FROM", "provenance", "From was derived from to."),
)

EDGE_TYPES: Final[Mapping[str, EdgeType]] = MappingProxyType(
    {
        name: EdgeType(name, category, name not in _STAYING, name in _PROTECTED, meaning)
        for name, category, meaning in _ROWS
    }
)
"""The 18 edge types by name, in the order of their categories."""

_VAGUE: Final = (
    "It says that two things have to do with each other, not how. Choose the type that says what is claimed."
)

REFUSED_EDGE_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RELATES_TO": _VAGUE,
        "ASSOCIATED_WITH": _VAGUE,
        "CONNECTED_TO": _VAGUE,
        "LINKED_TO": _VAGUE,
        "SIMILAR_TO": "Likeness is computed from the texts, not claimed. Choose the type that says what is claimed.",
        "CO_REFERENCED_WITH": "Being retrieved together is counted on existing edges and makes none.",
        "CO_OCCURS": "Co-occurrence is derived from the texts and never declared.",
        "MENTIONS": "Mentions are derived from the text and never declared; for the subject of a record use ABOUT.",
    }
)
"""Types that others use and that claim nothing, with the reason for refusing them. None has a true equivalent."""

_FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RELAT": "RELATES_TO",
        "IS_RELATED": "RELATES_TO",
        "ASSOCIAT": "ASSOCIATED_WITH",
        "CONNECT": "CONNECTED_TO",
        "LINK": "LINKED_TO",
        "SIMILAR": "SIMILAR_TO",
        "CO_REF": "CO_REFERENCED_WITH",
        "COREF": "CO_REFERENCED_WITH",
        "CO_OCCUR": "CO_OCCURS",
        "COOCCUR": "CO_OCCURS",
        "MENTION": "MENTIONS",
    }
)
"""How the spellings of each refused type begin (RELATED_TO, RELATES, RELATION ...)."""

_SAME_CLAIM: Final[Mapping[str, str]] = MappingProxyType(
    {
        "BECAUSE_OF": "CAUSED_BY",
        "DUE_TO": "CAUSED_BY",
        "ALLOWS": "ENABLES",
        "UNBLOCKS": "ENABLES",
        "PREVENTS": "BLOCKS",
        "DEPENDS_ON": "REQUIRES",
        "NEEDS": "REQUIRES",
        "BELONGS_TO": "PART_OF",
        "CONFIRMS": "SUPPORTS",
        "REFUTES": "CONTRADICTS",
        "CONFLICTS_WITH": "CONTRADICTS",
        "AFFECTS": "INFLUENCES",
        "IMPACTS": "INFLUENCES",
        "FULFILLED": "FOLLOWED_THROUGH",
        "CONTRIBUTES_TO": "ADVANCES",
        "CONCERNS": "ABOUT",
        "REGARDING": "ABOUT",
        "BECAME": "EVOLVED_INTO",
        "REPLACES": "SUPERSEDES",
        "SAME_AS": "DUPLICATES",
        "DERIVED_FROM": "EXTRACTED_FROM",
    }
)
"""What others call the same claim in the same direction: safe to suggest."""

_REVERSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MOTIVATES": "MOTIVATED_BY",
        "CAUSES": "CAUSED_BY",
        "CAUSED": "CAUSED_BY",
        "ENABLED_BY": "ENABLES",
        "BLOCKED_BY": "BLOCKS",
        "REQUIRED_BY": "REQUIRES",
        "CONTAINS": "PART_OF",
        "HAS_PART": "PART_OF",
        "SUPPORTED_BY": "SUPPORTS",
        "CONTRADICTED_BY": "CONTRADICTS",
        "INFLUENCED_BY": "INFLUENCES",
        "ADVANCED_BY": "ADVANCES",
        "EVOLVED_FROM": "EVOLVED_INTO",
        "SUPERSEDED_BY": "SUPERSEDES",
        "DUPLICATED_BY": "DUPLICATES",
    }
)
"""The same claim read backwards: right only with both ends exchanged, so it is explained and not suggested."""

_NEGATIONS: Final = ("UN", "DIS", "NOT_", "NO_", "NON_", "DOES_NOT_", "DOESNT_")


def check_edge_type(name: str) -> EdgeType:
    """The edge type of that name.

    Raises:
        VocabularyError: It is none of the 18. The error lists them, and suggests one where that is the same claim in
            the same direction: RELATES_TO and its kin, opposites and passives get an explanation and no suggestion.
    """
    if edge_type := EDGE_TYPES.get(name):
        return edge_type
    near, hint = _advise(name, re.sub(r"[\s\-]+", "_", name.strip().upper()))
    raise VocabularyError(
        field="type",
        value=name,
        allowed=EDGE_TYPES,
        did_you_mean=near,
        detail=f"{show(name)} is not an edge type. {hint}Allowed: {', '.join(EDGE_TYPES)}.",
    )


def _advise(name: str, folded: str) -> tuple[str | None, str]:
    """The type to suggest, if any, and a sentence about it."""
    for beginning, refused in _FAMILIES.items():
        if folded.startswith(beginning):
            return None, f"{REFUSED_EDGE_TYPES[refused]} "
    if turned := _REVERSED.get(folded):
        return None, f"Use {turned} with from and to exchanged. "
    near = _SAME_CLAIM.get(folded) or suggest(name, EDGE_TYPES)
    if near is None or (folded not in _SAME_CLAIM and not _same_sense(folded, near)):
        return None, ""
    return near, f"Did you mean {near}? "


def _same_sense(folded: str, near: str) -> bool:
    """Whether two names that look alike point the same way: neither a negation nor a passive lies between them."""
    return not folded.startswith(_NEGATIONS) and folded.endswith("_BY") == near.endswith("_BY")
