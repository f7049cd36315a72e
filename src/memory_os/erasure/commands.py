"""`memory-os erase verify`: what the command line does about erasures."""

from __future__ import annotations

import asyncio
import sys
from typing import Final
from uuid import UUID

from memory_os.erasure.verifying import (
    Tell,
    Wanted,
    read_receipt,
    readable_tables,
    search_graph,
    search_tables,
    waiting_events,
)
from memory_os.errors import StartupError
from memory_os.graph.port import GraphBackend, GraphUnavailableError
from memory_os.storage.database import Database, is_connection_loss

CLEAN: Final = 0
LEFT: Final = 1

FROM_INPUT: Final = "-"
"""Stands for a text that comes on standard input: what stands on a command line is kept by shells and shown by `ps`."""


def verify(
    owner_url: str,
    backend: GraphBackend | None,
    receipt_id: UUID,
    tenant_id: UUID | None,
    wanted: str | None,
    tell: Tell,
) -> int:
    """Search every table and the graph for what a receipt says is gone, with a line for each place.

    Args:
        owner_url: A login that sees all rows of all tables.
        backend: The graphs, or None where there are none to look into.
        receipt_id: The receipt.
        tenant_id: Whose it is; None finds out.
        wanted: A text that must be nowhere either; `-` reads it from standard input.
        tell: Takes each line.

    Returns:
        The exit code: 0 when nothing is left, 1 otherwise.

    Raises:
        StartupError: With the mend, if a place can't be looked into.
    """
    if wanted == FROM_INPUT:
        wanted = sys.stdin.read().removesuffix("\n")
    return asyncio.run(_verify(owner_url, backend, receipt_id, tenant_id, wanted, tell))


async def _verify(
    owner_url: str,
    backend: GraphBackend | None,
    receipt_id: UUID,
    tenant_id: UUID | None,
    wanted: str | None,
    tell: Tell,
) -> int:
    database = Database(owner_url, pool_size=1)
    try:
        async with database.engine.connect() as connection:
            await connection.execution_options(isolation_level="REPEATABLE READ")  # it reads by cursors
            tables = await readable_tables(connection)
            receipt = await read_receipt(connection, receipt_id, tenant_id)
            looked_for = Wanted.of(receipt["record_ids"], wanted)
            left = await search_tables(connection, tables, receipt["tenant_id"], looked_for, tell)
            waiting = await waiting_events(connection, receipt["tenant_id"], receipt["position"])
        if backend is None:
            tell("-     graph: graph memory is off, so there is none")
        else:
            left += await _look_into_graph(backend, receipt["tenant_id"], looked_for, waiting, tell)
    except Exception as error:
        if not is_connection_loss(error):
            raise
        raise StartupError("the database does not answer: is OWNER_DATABASE_URL right?") from None
    finally:
        await database.close()
    ids = f"{len(looked_for.ids)} ids" + ("" if wanted is None else " and the text")
    tell(f"{'nothing is left' if not left else 'SOMETHING IS LEFT'} of receipt {receipt_id}: {ids} looked for")
    return LEFT if left else CLEAN


async def _look_into_graph(backend: GraphBackend, tenant_id: UUID, wanted: Wanted, waiting: int, tell: Tell) -> int:
    try:
        await backend.open()
        left = await search_graph(backend, tenant_id, wanted, tell)
    except GraphUnavailableError as error:
        raise StartupError(f"the graph does not answer ({error}): are FALKOR_HOST and FALKOR_PORT right?") from None
    finally:
        await backend.close()
    if left and waiting:
        tell(f"      {waiting} events are still to be projected: ask again when they are")
    return left
