"""What the two kinds of undo share: what they are given, and the vector of the entity that stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import RowMapping

from memory_os.domain.audiences import Audience
from memory_os.domain.principal import Principal
from memory_os.entities.model import Entity
from memory_os.entities.vectors import EmbeddedTexts
from memory_os.entities.writing import embedded_text
from memory_os.outbox.events import NewEvent
from memory_os.storage.database import Transaction


@dataclass(frozen=True, slots=True)
class Undoing:
    """An act that is being undone, and the entity that it was done to; both are locked, and nothing was done since."""

    tx: Transaction
    principal: Principal
    act: RowMapping
    current: Entity
    vectors: EmbeddedTexts


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo has made: the entity that stays, the one that came back, who reads both, and the events."""

    entity: Entity
    restored: Entity | None
    readers: Sequence[Audience]
    events: Sequence[NewEvent]


def text_to_embed(current: Entity, aliases: list[str], kept: Mapping[str, Any]) -> str | None:
    """The text that has to be embedded where an entity gets these aliases; None where its vector is known."""
    text = embedded_text(current.name, aliases, current.summary)
    if aliases == current.aliases or text == kept["text"]:
        return None
    return text


def names_and_vector(undoing: Undoing, aliases: list[str], kept: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that change where an entity gets these aliases; its vector is that of before if its text is.

    Raises:
        EntityMovedError: If its text is another one than was embedded.
    """
    if aliases == undoing.current.aliases:
        return {}
    text = text_to_embed(undoing.current, aliases, kept)
    if text is None:
        return {"aliases": aliases, "embedding": kept["embedding"], "embedding_model": kept["embedding_model"]}
    return {"aliases": aliases, **undoing.vectors.columns(text)}
