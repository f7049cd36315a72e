"""`/v1/vocabulary`: the closed lists that requests are held against, as tables to read or to show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from litestar import Controller, get
from msgspec import Struct

from memory_os.domain.edge_types import EDGE_TYPES, REFUSED_EDGE_TYPES
from memory_os.domain.labels import LABELS, LAYERS, LIFECYCLES, RETIRED_LABELS, STATUSES
from memory_os.entities.model import ENTITY_STATUSES, LINK_LAYERS
from memory_os.memories.model import Visibility
from memory_os.records.model import RECORD_STATUSES


class Term(Struct):
    """A word and what it means."""

    name: str
    meaning: str


class LabelTerm(Struct):
    """A label with its lifecycle; `transitions` names, for each status, those that may follow."""

    name: str
    layer: str
    lifecycle: str
    statuses: list[str]
    transitions: dict[str, list[str]]
    immutable_text: bool
    protected: bool
    meaning: str


class EdgeTypeTerm(Struct):
    """An edge type; one that `migrates` follows a memory to the one that supersedes it."""

    name: str
    category: str
    migrates: bool
    protected: bool
    meaning: str


class RefusedTerm(Struct):
    """A word that is refused, and what to do instead."""

    name: str
    instead: str


class Vocabulary(Struct):
    """Every closed list."""

    layers: list[Term]
    lifecycles: list[Term]
    labels: list[LabelTerm]
    retired_labels: list[RefusedTerm]
    statuses: list[Term]
    edge_types: list[EdgeTypeTerm]
    refused_edge_types: list[RefusedTerm]
    link_layers: list[str]
    entity_statuses: list[Term]
    record_statuses: list[Term]
    visibilities: list[str]


def build_vocabulary() -> Vocabulary:
    """The lists as the rules hold them."""
    return Vocabulary(
        layers=_terms(LAYERS),
        lifecycles=_terms(LIFECYCLES),
        labels=[
            LabelTerm(
                label.name,
                label.layer,
                label.lifecycle,
                list(label.statuses),
                {status: list(following) for status, following in label.transitions.items()},
                label.immutable_text,
                label.protected,
                label.meaning,
            )
            for label in LABELS.values()
        ],
        retired_labels=[RefusedTerm(name, instead) for name, instead in RETIRED_LABELS.items()],
        statuses=_terms(STATUSES),
        edge_types=[
            EdgeTypeTerm(edge.name, edge.category, edge.migrates, edge.protected, edge.meaning)
            for edge in EDGE_TYPES.values()
        ],
        refused_edge_types=[RefusedTerm(name, instead) for name, instead in REFUSED_EDGE_TYPES.items()],
        link_layers=list(LINK_LAYERS),
        entity_statuses=_terms(ENTITY_STATUSES),
        record_statuses=_terms(RECORD_STATUSES),
        visibilities=list(get_args(Visibility)),
    )


def _terms(words: Mapping[str, str]) -> list[Term]:
    return [Term(name, meaning) for name, meaning in words.items()]


_VOCABULARY = build_vocabulary()


class VocabularyController(Controller):
    """The closed lists of the service."""

    path = "/v1/vocabulary"
    tags = ["vocabulary"]  # noqa: RUF012 - Litestar reads it from the class

    @get("/", operation_id="getVocabulary", opt={"permission": "read"}, summary="Labels, edge types, statuses")
    async def read(self) -> Vocabulary:
        """Labels, layers, statuses, edge types, and the names that are refused with what to use instead."""
        return _VOCABULARY
