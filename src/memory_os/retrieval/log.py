"""The log of retrievals: written beside the answer, so that any past one can be explained."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec
import structlog
from msgspec import to_builtins
from sqlalchemy import ColumnElement, Select, insert, select
from sqlalchemy.engine import RowMapping

from memory_os.domain.principal import Principal
from memory_os.errors import NotFoundError
from memory_os.retrieval.arms import Ref, Window
from memory_os.retrieval.hydrating import hydrate
from memory_os.retrieval.model import LoggedItem, PathNode, RetrievalExplanation, RetrievalSummary
from memory_os.retrieval.trails import describe, names_of
from memory_os.storage import retrieval_tables
from memory_os.storage.database import Database, Scope, Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

log = structlog.get_logger(__name__)

WRITERS: Final = 2
"""Connections that the log takes of the pool at a time."""

MAX_WAITING: Final = 1_000
"""Entries that wait at most; beyond that the database is the bottleneck, and an answer matters more than its log."""

_READ_BACK_S: Final = 1.0
"""How long a reader waits for an entry that this process is still writing."""

OVERSEERS: Final = frozenset({"operator", "admin"})
"""Roles that see every retrieval of their tenant."""

EVER: Final = Window(datetime(9999, 12, 31, tzinfo=UTC), history=True)
"""Records are named in an explanation whatever has become of them."""

_LOG, _ITEMS = retrieval_tables.retrievals, retrieval_tables.retrieval_items

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class ItemEntry:
    """One record that was found. `reason` is why it is not in the pack, `edges` are the typed edges of its path."""

    ref: Ref
    in_pack: bool
    reason: str | None
    score: float
    arms: dict[str, Any]
    path: Sequence[PathNode]
    edges: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True)
class RetrievalEntry:
    """One answer as the log keeps it: the columns of `retrievals` beside tenant and principal, and its items."""

    id: UUID
    principal: Principal
    values: dict[str, Any]
    items: Sequence[ItemEntry]


class RetrievalLog:
    """Writes entries in tasks of its own. A failure is logged and never raised."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writing: dict[UUID, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(WRITERS)

    def keep(self, entry: RetrievalEntry) -> None:
        """Write an entry soon."""
        if len(self._writing) >= MAX_WAITING:
            log.error("retrieval_not_logged", retrieval_id=str(entry.id), reason="too many entries wait to be written")
            return
        task = asyncio.create_task(self._write(entry), name="retrieval-log")
        self._writing[entry.id] = task
        task.add_done_callback(lambda _: self._writing.pop(entry.id, None))

    async def settle(self, retrieval_id: UUID) -> None:
        """Wait a moment for an entry that this process is still writing."""
        if (task := self._writing.get(retrieval_id)) is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_READ_BACK_S):
                    await asyncio.shield(task)

    async def close(self) -> None:
        """Wait for everything that is being written."""
        while self._writing:
            await asyncio.wait(set(self._writing.values()))

    async def _write(self, entry: RetrievalEntry) -> None:
        try:
            async with self._turns:
                await self._database.run(Scope.of(entry.principal), lambda tx: _insert(tx, entry))
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer has been given
            log.warning("retrieval_not_logged", retrieval_id=str(entry.id), error_class=type(error).__name__)


async def _without_erased(tx: Transaction, entry: RetrievalEntry) -> RetrievalEntry:
    """An entry without what has been erased since it was found, and then without the question that found it.

    Until it is written, the next erasure waits for it.
    """
    await tx.hot("beside_erasures", {"tenant_id": tx.tenant_id})
    named = {ident for item in entry.items for ident in (item.ref.id, *(node.id for node in item.path))}
    async with tx.as_steward():
        rows = await tx.hot("erased_lately", {"tenant_id": tx.tenant_id, "ids": sorted(named)})
    gone = {row["id"] for row in rows}
    if not gone:
        return entry
    kept = [item for item in entry.items if gone.isdisjoint((item.ref.id, *(node.id for node in item.path)))]
    return replace(entry, values={**entry.values, "query": ""}, items=kept)


async def _insert(tx: Transaction, found: RetrievalEntry) -> None:
    entry = await _without_erased(tx, found)
    principal = entry.principal
    await tx.run(
        insert(_LOG).values(
            tenant_id=tx.tenant_id,
            id=entry.id,
            token_id=principal.token_id,
            user_id=principal.user_id,
            **entry.values,
        )
    )
    given = {"tenant_id": tx.tenant_id, "retrieval_id": entry.id}
    if entry.items:
        rows = [
            {
                "position": position,
                "record_type": item.ref.type,
                "record_id": item.ref.id,
                "in_pack": item.in_pack,
                "reason": item.reason,
                "score": item.score,
                "arms": item.arms,
                "path": item.path,
            }
            for position, item in enumerate(entry.items)
        ]
        await tx.touched("log_items", {**given, "items": _encode(rows).decode()})
    walks = [(edge_id, item.ref) for item in entry.items if item.in_pack for edge_id in item.edges]
    if walks:
        columns = {
            "edge_ids": [edge_id for edge_id, _ in walks],
            "record_ids": [ref.id for _, ref in walks],
            "record_types": [ref.type for _, ref in walks],
        }
        await tx.touched("log_walks", {**given, **columns})


async def list_retrievals(
    tx: Transaction, principal: Principal, cursor: str | None, limit: int
) -> Page[RetrievalSummary]:
    """Retrievals, newest first: one's own, and for operators and admins the whole tenant's."""
    statement = _readable(principal, select(_LOG).where(_LOG.c.tenant_id == tx.tenant_id))
    rows = await tx.rows(newest_first(statement, _LOG.c.created_at, _LOG.c.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([_summary_of(row) for row in page], next_cursor)


async def explain_retrieval(tx: Transaction, principal: Principal, retrieval_id: UUID) -> RetrievalExplanation:
    """A past answer with everything that was found for it.

    Records are named as this reader sees them today. In somebody else's retrieval, what this reader may not see is left
    out, and so is a path through it; in one's own, the id stays, since it was shown at the time.

    Raises:
        NotFoundError: If there is none of that id that this reader may see.
    """
    row = await find_retrieval(tx, principal, retrieval_id)
    items = await tx.rows(
        select(_ITEMS)
        .where(_ITEMS.c.tenant_id == tx.tenant_id, _ITEMS.c.retrieval_id == retrieval_id)
        .order_by(_ITEMS.c.position)
    )
    paths = [[PathNode(**{**node, "id": UUID(node["id"])}) for node in item["path"]] for item in items]
    refs = {Ref(item["record_type"], item["record_id"]) for item in items}
    refs |= {Ref(node.type, node.id) for path in paths for node in path}
    names = names_of(await hydrate(tx, refs, (), EVER))
    own = is_own(principal, row)
    shown = [
        _logged(item, path, names)
        for item, path in zip(items, paths, strict=True)
        if own or (item["record_id"] in names and all(node.id in names for node in path))
    ]
    return RetrievalExplanation(_summary_of(row), row["arms"], row["bounds"], row["timings_ms"], shown)


async def find_retrieval(tx: Transaction, principal: Principal, retrieval_id: UUID) -> RowMapping:
    """The row of a retrieval.

    Raises:
        NotFoundError: If there is none of that id that this reader may see.
    """
    statement = select(_LOG).where(_LOG.c.tenant_id == tx.tenant_id, _LOG.c.id == retrieval_id)
    row = await tx.row(_readable(principal, statement))
    if row is None:
        raise NotFoundError("there is no such retrieval")
    return row


def _readable(principal: Principal, statement: Select[Any]) -> Select[Any]:
    return statement if principal.role in OVERSEERS else statement.where(*made_by(principal))


def readable_retrieval(tx: Transaction, principal: Principal, ident: ColumnElement[Any]) -> Select[Any]:
    """The id of a retrieval if this reader may see it, for a sub-select."""
    return _readable(principal, select(_LOG.c.id).where(_LOG.c.tenant_id == tx.tenant_id, _LOG.c.id == ident))


def made_by(principal: Principal) -> list[ColumnElement[bool]]:
    """The condition that a retrieval was made as this principal.

    A user's are those made as that user; without a user, those made with the same token for nobody.
    """
    if principal.user_id is not None:
        return [_LOG.c.user_id == principal.user_id]
    return [_LOG.c.user_id.is_(None), _LOG.c.token_id == principal.token_id]


def is_own(principal: Principal, row: RowMapping) -> bool:
    """Whether a retrieval was made as this principal, and not merely may be seen by it."""
    if principal.user_id is not None:
        return bool(row["user_id"] == principal.user_id)
    return row["user_id"] is None and row["token_id"] == principal.token_id


def _summary_of(row: Any) -> RetrievalSummary:  # noqa: ANN401 - a row of `retrievals`
    return RetrievalSummary(**{name: row[name] for name in RetrievalSummary.__struct_fields__})


def _logged(item: Any, path: list[PathNode], names: dict[UUID, str]) -> LoggedItem:  # noqa: ANN401 - as above
    return LoggedItem(
        position=item["position"],
        type=item["record_type"],
        id=item["record_id"],
        title=names.get(item["record_id"]),
        in_pack=item["in_pack"],
        reason=item["reason"],
        score=item["score"],
        arms=item["arms"],
        path=[to_builtins(node) for node in path],
        why=[describe(path, names)] if path else [],
    )
