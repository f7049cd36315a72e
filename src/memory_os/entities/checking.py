"""What an entity and a link must satisfy before they are stored."""

from __future__ import annotations

from collections.abc import Sequence

from memory_os.checking import (
    changed_reader_faults,
    check_word,
    moment_faults,
    new_reader_faults,
    payload_faults,
    text_faults,
    window_faults,
)
from memory_os.domain.names import canonical_name
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import check_text
from memory_os.entities.model import (
    ENTITY_STATUSES,
    LINK_LAYERS,
    ClosingLink,
    Entity,
    EntityDraft,
    EntityMerge,
    EntityPatch,
    EntitySplit,
    LinkDraft,
)
from memory_os.errors import FieldError, InvalidInputError

CANONICAL_BYTES = 2000
"""Longest canonical form: it is a key of a B-tree, whose rows hold 2704 bytes, and folding can make a name 18 times
longer (U+FDFA)."""

_TEXTS = ("name", "entity_type", "summary")
_SOLID = ("entity_type",)


def check_draft(draft: EntityDraft, principal: Principal) -> None:
    """Check an entity before it is embedded and stored.

    Raises:
        InvalidInputError: With a pointer for each fault.
    """
    faults = _field_faults(draft) + new_reader_faults(principal, draft.visibility, draft.readers)
    if faults:
        raise InvalidInputError("the entity can't be stored as it is", errors=faults)


def check_patch(patch: EntityPatch, current: Entity, principal: Principal) -> None:
    """Check a change against the entity as it is stored now.

    Raises:
        InvalidInputError: With a pointer for each fault.
        UnknownTermError: If the new status is none.
    """
    check_word("/status", patch.status, ENTITY_STATUSES, noun="status of entities")
    faults = _field_faults(patch) + changed_reader_faults(principal, patch, current)
    if faults:
        raise InvalidInputError("the change can't be made as it is", errors=faults)


def check_merge(merge: EntityMerge) -> None:
    """Check that a merge names two entities.

    Raises:
        InvalidInputError: If both are the same.
    """
    if merge.source == merge.into:
        fault = FieldError("/into", "must be another entity than from")
        raise InvalidInputError("an entity can't be merged into itself", errors=[fault])


def check_split(split: EntitySplit) -> None:
    """Check the names of a split, as far as that goes without the entity.

    Raises:
        InvalidInputError: With a pointer for each fault.
    """
    if faults := _field_faults(split):
        raise InvalidInputError("the entity can't be split like that", errors=faults)


def check_link(draft: LinkDraft) -> None:
    """Check a link before it is stored.

    Raises:
        InvalidInputError: With a pointer for each fault.
        UnknownTermError: If nothing can be linked in its layer.
    """
    check_word("/layer", draft.layer, LINK_LAYERS, noun="layer that a link can lead to")
    faults = text_faults(draft, ("relationship",), solid=("relationship",))
    faults += moment_faults(draft, ("valid_from", "valid_to"))
    if not faults:
        faults = window_faults(draft.valid_from, draft.valid_to)
    if faults:
        raise InvalidInputError("the link can't be stored as it is", errors=faults)


def check_closing(closing: ClosingLink) -> None:
    """Check the end of a link.

    Raises:
        InvalidInputError: If it is no moment that can be held.
    """
    if faults := moment_faults(closing, ("valid_to",)):
        raise InvalidInputError("the link can't be closed like that", errors=faults)


def distinct_aliases(name: str, aliases: Sequence[str]) -> list[str]:
    """The aliases that say something: the first spelling of each, without those that are the name once more."""
    taken = {canonical_name(name)}
    kept = []
    for alias in aliases:
        canonical = canonical_name(alias)
        if canonical not in taken:
            taken.add(canonical)
            kept.append(alias)
    return kept


def _field_faults(shape: EntityDraft | EntityPatch | EntitySplit) -> list[FieldError]:
    faults = text_faults(shape, _TEXTS, solid=_SOLID)
    if isinstance(shape.name, str):
        faults += _name_faults("/name", shape.name)
    if isinstance(shape.aliases, list):
        for index, alias in enumerate(shape.aliases):
            faults += _name_faults(f"/aliases/{index}", alias)
    return [*faults, *payload_faults(getattr(shape, "payload", None), "/payload")]


def _name_faults(pointer: str, name: str) -> list[FieldError]:
    if fault := check_text(name):
        # A name's own text was looked at already; only an alias comes here with a fault.
        return [] if pointer == "/name" else [FieldError(pointer, fault)]
    canonical = canonical_name(name)
    if not canonical:
        return [FieldError(pointer, "nothing of this name can be seen")]
    if len(canonical.encode()) > CANONICAL_BYTES:
        return [FieldError(pointer, "is too long once its signs are written out")]
    return []
