"""Taking a split back: the entity that came out goes, and the old one has its names again."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import delete, or_, select
from sqlalchemy.engine import RowMapping

from memory_os.domain.audiences import Audience
from memory_os.edges.holding import relations_beside
from memory_os.entities.acts import adopt_acts
from memory_os.entities.checking import distinct_aliases
from memory_os.entities.model import MAX_ALIASES, Entity
from memory_os.entities.reading import find_entity
from memory_os.entities.rows import READERS, TEXTS, read_row, update_row
from memory_os.entities.undo_steps import Undoing, Undone, names_and_vector, text_to_embed
from memory_os.errors import ConflictError
from memory_os.outbox.events import DELETE, UPSERT, NewEvent
from memory_os.storage import tables

_TABLE = tables.entities
_SAME = (*TEXTS, *READERS, "created_at")
"""What tells whether an entity is as it was when it came out."""


def text_after_undone_split(act: RowMapping, current: Entity) -> str | None:
    """The text to embed, where it is neither that of now nor that of before the split."""
    return text_to_embed(current, _aliases(act["before"], current), act["before"]["old"])


async def undo_split(undoing: Undoing) -> Undone:
    """Merge an entity back into the one that it came out of. It has nothing of its own, or it would be lost.

    Raises:
        ConflictError: If the entity that came out is gone, not this reader's to see, or was changed, linked or tied
            to memories since; if others may read the old one than may read it; if there would be too many aliases.
        EntityMovedError: If the text of the old entity is not one that was embedded.
    """
    tx, act, current = undoing.tx, undoing.act, undoing.current
    made = await find_entity(tx, act["other_id"])
    if made is None:
        raise ConflictError("the entity that came out is gone, or is not yours to see: change the old one instead")
    await _check_untouched(undoing, made)
    if not Audience.of(made).covers(Audience.of(current)):
        raise ConflictError(
            f"the old entity has got readers who may not see {made.id}, which came out of it: give it no more than that"
        )
    aliases = _aliases(act["before"], current)
    if len(aliases) > MAX_ALIASES:
        raise ConflictError(f"the entity would have more than {MAX_ALIASES} aliases: remove some first")
    await adopt_acts(tx, made.id, current.id)
    await tx.run(delete(_TABLE).where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == made.id))
    entity = await update_row(tx, current.id, names_and_vector(undoing, aliases, act["before"]["old"]))
    events = [
        NewEvent(DELETE, "entity", made.id, made.version + 1),
        NewEvent(UPSERT, "entity", current.id, entity.version),
    ]
    return Undone(entity, None, [Audience.of(made), Audience.of(current)], events)


async def _check_untouched(undoing: Undoing, made: Entity) -> None:
    tx, then = undoing.tx, undoing.act["before"]["made"]
    now = msgspec.to_builtins(await read_row(tx, made.id))
    if changed := [name for name in _SAME if now[name] != then.get(name)]:
        raise ConflictError(
            f"{made.id}, which came out, was changed since ({', '.join(changed)}): change it back, or merge the two",
            extra={"changed": {"entity_id": str(made.id), "fields": changed}},
        )
    if await relations_beside(tx, made.id):
        raise ConflictError(
            f"{made.id}, which came out, was linked or tied to memories since: delete these edges and links, or merge "
            "the two",
            extra={"linked": {"entity_id": str(made.id), **await _seen_relations(undoing, made)}},
        )


async def _seen_relations(undoing: Undoing, made: Entity) -> dict[str, Any]:
    """The ids of the edges and links of an entity, of those of which this reader sees both ends."""
    edges, links = tables.edges.c, tables.entity_links.c
    ends = {
        "edges": (edges, edges.source_entity_id, edges.target_entity_id),
        "links": (links, links.entity_id, links.target_entity_id),
    }
    seen = {}
    for what, (columns, *ids) in ends.items():
        mine = or_(*(column == made.id for column in ids))
        rows = await undoing.tx.rows(select(columns.id).where(columns.tenant_id == undoing.tx.tenant_id, mine))
        seen[what] = sorted(str(row["id"]) for row in rows)
    return seen


def _aliases(before: dict[str, Any], current: Entity) -> list[str]:
    """The aliases of the old entity, with those that went."""
    if current.aliases == before["left"]:
        return distinct_aliases(current.name, before["old"]["aliases"])
    return distinct_aliases(current.name, [*current.aliases, *before["taken"]])
