"""Exporting: the rows of one snapshot as lines, as many at a time as fit a page, whatever their number."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import select

from memory_os.errors import NotFoundError
from memory_os.storage import tables
from memory_os.storage.database import Database, Scope, Transaction
from memory_os.transfer.format import FileTenant, LineWriter, derived_ids, header_of
from memory_os.transfer.kinds import Kind
from memory_os.transfer.selecting import Selection

PAGE: Final = 500
"""Rows that are held at a time."""

NO_LIMIT: Final = "0"

Advance = Callable[[int], None]
"""Told of every page how many records it had."""


async def count_rows(tx: Transaction, selection: Selection) -> dict[str, int]:
    """How many records there are of each kind; for the service itself, whoever may read them."""
    counts: dict[str, int] = {}
    async with tx.as_steward():
        for kind in selection.kinds:
            async for rows in tx.pages(selection.count(kind), selection.parameters(tx.tenant_id), 1):
                counts[kind.name] = rows[0][0]
    return counts


async def export_lines(
    database: Database,
    scope: Scope,
    selection: Selection,
    *,
    idle: str = NO_LIMIT,
    begun: Callable[[dict[str, int]], Advance] = lambda _: lambda _: None,
) -> AsyncIterator[bytes]:
    """The lines of an export, from one snapshot.

    Args:
        database: Where from.
        scope: The tenant, entered by whoever may have all of the selection.
        selection: Which rows.
        idle: How long the reader of the lines may take for a page, as Postgres writes it; by default any time.
        begun: Called with the counts once they are known; what it gives is told of the progress.

    Raises:
        NotFoundError: If there is no such tenant.
    """
    async with database.transaction(scope, snapshot=True) as tx:
        await tx.hot("export_settings", {"idle": idle})
        tenant = await _tenant_of(tx)
        counts = await count_rows(tx, selection)
        advance, writer = begun(counts), LineWriter()
        yield writer.header(header_of(tenant, datetime.now(UTC), counts, selection.user))
        async with tx.as_steward():
            for kind in selection.kinds:
                async for rows in tx.pages(selection.rows(kind), selection.parameters(tx.tenant_id), PAGE):
                    yield await _lines(tx, writer, kind, [row[0] for row in rows], named=selection.user is None)
                    advance(len(rows))
        yield writer.trailer()


async def _lines(tx: Transaction, writer: LineWriter, kind: Kind, records: Sequence[str], *, named: bool) -> bytes:
    names: dict[str, str] = {}
    if named and kind.names_entities:
        wanted: set[str] = set().union(*map(derived_ids, records))
        if wanted:
            found = await tx.hot("export_names", {"tenant_id": tx.tenant_id, "ids": sorted(wanted)})
            names = {str(row["id"]): row["canonical_name"] for row in found}
    return b"".join([writer.record(kind.name, record, names) for record in records])


async def _tenant_of(tx: Transaction) -> FileTenant:
    columns: Any = tables.tenants.c
    row = await tx.row(select(columns.name, columns.time_zone).where(columns.tenant_id == tx.tenant_id))
    if row is None:
        raise NotFoundError("there is no such tenant")
    return FileTenant(row["name"], row["time_zone"])
