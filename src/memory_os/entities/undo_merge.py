"""Taking a merge back: the entity that went comes back as it was, with its edges, links and acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.engine import RowMapping

from memory_os.domain.audiences import Audience
from memory_os.domain.names import canonical_name
from memory_os.entities.acts import give_acts_back, later_joins, later_migrations
from memory_os.entities.model import Entity
from memory_os.entities.moving import EDGES, LINKS
from memory_os.entities.reading import get_entity
from memory_os.entities.returning import missing_relations, return_relations, touched_ids
from memory_os.entities.rows import put_row_back, update_row
from memory_os.entities.undo_steps import Undoing, Undone, names_and_vector, text_to_embed
from memory_os.errors import ConflictError
from memory_os.outbox.events import UPSERT, NewEvent
from memory_os.storage import tables
from memory_os.storage.database import Transaction


def text_after_undone_merge(act: RowMapping, current: Entity) -> str | None:
    """The text to embed, where it is neither that of now nor that of before the merge."""
    return text_to_embed(current, _aliases(act["before"], current), act["before"]["into"])


async def undo_merge(undoing: Undoing) -> Undone:
    """Put back what a merge took away. Names, links and gains that came since stay with the entity that stayed.

    Raises:
        ConflictError: If the entity that went is not this reader's to see, its id or that of an edge or link is taken,
            or another act has made one of these part of others since.
        EntityMovedError: If the text of the entity that stays is not one that was embedded.
    """
    tx, act, current = undoing.tx, undoing.act, undoing.current
    before, source = act["before"], act["other_id"]
    audience = Audience.of_columns(before["row"])
    if not audience.admits(undoing.principal.user_id, undoing.principal.groups):
        raise ConflictError("the entity that went would not be yours to see: ask one of its readers to undo this")
    await _check_joins(tx, act)
    version = await put_row_back(tx, before["row"])
    aliases = _aliases(before, current)
    entity = await update_row(tx, current.id, names_and_vector(undoing, aliases, before["into"]))
    await _see_again(tx, current.id, before["into"])
    edges = await return_relations(tx, EDGES, before["edges"], source, current.id)
    links = await return_relations(tx, LINKS, before["links"], source, current.id)
    await give_acts_back(tx, before.get("acts", ()), source)
    events = [
        NewEvent(UPSERT, "entity", source, version),
        NewEvent(UPSERT, "entity", current.id, entity.version),
        *edges,
        *links,
    ]
    readers = [audience, Audience.of(current)]
    return Undone(await get_entity(tx, current.id), await get_entity(tx, source), readers, events)


def _aliases(before: Mapping[str, Any], current: Entity) -> list[str]:
    """The aliases of the entity that stays, without those that the merge gave it."""
    own, after = before["into"]["aliases"], before["after"]
    if current.aliases == after:
        return list(own)
    given = {canonical_name(alias) for alias in after} - {canonical_name(alias) for alias in own}
    return [alias for alias in current.aliases if canonical_name(alias) not in given]


async def _see_again(tx: Transaction, entity_id: UUID, kept: Mapping[str, Any]) -> None:
    given = {"tenant_id": tx.tenant_id, "id": entity_id}
    async with tx.as_steward():
        await tx.touched("see_again", {**given, "first_seen": kept["first_seen"], "last_seen": kept["last_seen"]})


async def _check_joins(tx: Transaction, act: RowMapping) -> None:
    """Raises `ConflictError` where edges or links of the merge became part of others, which it takes to part again."""
    edges, links = act["before"]["edges"], act["before"]["links"]
    joins = await later_joins(tx, act, [*touched_ids(edges), *touched_ids(links)])
    migrations = await later_migrations(tx, act, await missing_relations(tx, edges))
    if not joins and not migrations:
        return
    seen = [
        *await _visible(tx, joins, "entity_id", tables.entities),
        *await _visible(tx, migrations, "memory_id", tables.memories),
    ]
    named = f": {', '.join(row['kind'] + ' ' + row['id'] for row in seen)}" if seen else ", by who sees these"
    raise ConflictError(
        "edges or links of this merge became part of others since, when other entities were merged or memories were "
        f"superseded. Undo these acts first{named}",
        extra={"later": seen},
    )


async def _visible(tx: Transaction, acts: Sequence[RowMapping], column: str, table: Any) -> list[dict[str, str]]:  # noqa: ANN401 - a table of entities or memories
    """The acts on records that this reader sees, as an error tells them."""
    ids = {act[column] for act in acts}
    if not ids:
        return []
    rows = await tx.rows(select(table.c.id).where(table.c.tenant_id == tx.tenant_id, table.c.id.in_(ids)))
    seen = {row["id"] for row in rows}
    return [{name: str(act[name]) for name in ("id", "kind", column)} for act in acts if act[column] in seen]
