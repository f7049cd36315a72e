"""Importing: the records of a file into a tenant, in one transaction, a few hundred at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import msgspec
from psycopg import errors
from sqlalchemy import TextClause, text
from sqlalchemy.exc import DBAPIError

from memory_os.outbox.events import UPSERT, NewEvent, Outbox
from memory_os.storage.database import Transaction
from memory_os.transfer.format import FileError
from memory_os.transfer.kinds import KINDS, Kind
from memory_os.transfer.reading import FileReader, FileRecord

BATCH: Final = 500
"""Records of one statement; neither 100 nor 2,000 are faster (measured)."""

BATCH_CHARS: Final = 4_000_000
"""Characters of one statement: long passages make it shorter."""

_SAVEPOINT: Final = text("SAVEPOINT batch")
_RELEASE: Final = text("RELEASE SAVEPOINT batch")
_BACK: Final = text("ROLLBACK TO SAVEPOINT batch")
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Imported:
    """What an import did, by kind: how many records it made, and how many were there already, the same."""

    made: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    there: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))


async def import_records(
    tx: Transaction, outbox: Outbox, reader: FileReader, advance: Callable[[int], None] = lambda _: None
) -> Imported:
    """Store all records of a file under their ids, with an event for each that has a place in the graph.

    A record that is there with the same content is passed over.

    Args:
        tx: The unit of work; to be rolled back on any error.
        outbox: Where the projections are enqueued.
        reader: The file.
        advance: Told of every batch how many records it had.

    Raises:
        FileError: If the file is not whole, or a record can't be stored as it is, or is there with other content.
    """
    done = Imported()
    async with tx.as_steward():
        for batch in _batches(reader.records()):
            await _store(tx, outbox, batch, done)
            advance(len(batch))
    return done


def _batches(records: Iterator[FileRecord]) -> Iterator[list[FileRecord]]:
    """Records that one statement can store: of one kind, with the same columns, and no id twice."""
    batch: list[FileRecord] = []
    ids: set[Any] = set()
    chars = 0
    for record in records:
        like = not batch or (record.kind is batch[0].kind and record.columns == batch[0].columns)
        if batch and (not like or record.id in ids or len(batch) == BATCH or chars > BATCH_CHARS):
            yield batch
            batch, ids, chars = [], set(), 0
        batch.append(record)
        ids.add(record.id)
        chars += len(record.record)
    if batch:
        yield batch


async def _store(tx: Transaction, outbox: Outbox, batch: Sequence[FileRecord], done: Imported) -> None:
    kind = batch[0].kind
    await tx.run(_SAVEPOINT)
    try:
        rows = await _insert(tx, batch)
    except DBAPIError as error:
        await tx.run(_BACK)
        raise await _find_fault(tx, batch, error) from None
    await tx.run(_RELEASE)
    for record, row in zip(batch, rows, strict=True):
        if not row["made"] and not row["same"]:
            raise FileError(record.number, f"the tenant has the {kind.name} {record.id} with other content")
    made = [(record, row) for record, row in zip(batch, rows, strict=True) if row["made"]]
    done.made[kind.name] += len(made)
    done.there[kind.name] += len(batch) - len(made)
    if kind.aggregate is not None:
        events = [NewEvent(UPSERT, kind.aggregate, record.id, row["version"]) for record, row in made]
        await outbox.enqueue(tx, events, None)


async def _insert(tx: Transaction, batch: Sequence[FileRecord]) -> list[Any]:
    lines = b",".join(
        b'{"line":%d,"search_text":%b,"record":%b}' % (r.number, _encode(r.search_text), r.record.encode())
        for r in batch
    )
    given = {"tenant_id": tx.tenant_id, "lines": f"[{lines.decode()}]"}
    return list((await tx.run(_statement(batch[0].kind, batch[0].columns), given)).mappings())


@cache
def _statement(kind: Kind, columns: tuple[str, ...]) -> TextClause:
    """Inserts what is not there, and tells of each record whether it was made, or whether what is there is the same."""
    table = kind.table.name
    names = ", ".join(f'"{name}"' for name in columns)
    searched = ", search" if kind.searched else ""
    vector = ", memory_os_text_vector(search_text)" if kind.searched else ""
    compared = [f'"{name}"' for name in columns if name != "id"]
    same = (
        f"ROW({', '.join(f'there.{name}' for name in compared)}) IS NOT DISTINCT FROM "
        f"ROW({', '.join(f'given.{name}' for name in compared)})"
    )
    if kind.name == "entity":  # derived ones are made by whoever comes first
        same = f"({same} OR NOT (there.declared OR given.declared))"
    version = "given.version" if "version" in columns else "1"
    return text(f"""
    WITH given AS MATERIALIZED (
        SELECT lines.line, lines.search_text, {", ".join(f'record."{name}"' for name in columns)}
        FROM jsonb_to_recordset(CAST(:lines AS jsonb)) AS lines (line bigint, search_text text, record jsonb)
             CROSS JOIN LATERAL jsonb_populate_record(NULL::{table}, lines.record) AS record
    ),
    put AS (
        INSERT INTO {table} (tenant_id, {names}{searched})
        SELECT CAST(:tenant_id AS uuid), {names}{vector} FROM given ORDER BY line
        ON CONFLICT (tenant_id, id) DO NOTHING
        RETURNING id
    )
    SELECT put.id IS NOT NULL AS made, there.id IS NOT NULL AND {same} AS same, {version} AS version
    FROM given LEFT JOIN put ON put.id = given.id
         LEFT JOIN {table} AS there ON there.tenant_id = CAST(:tenant_id AS uuid) AND there.id = given.id
    ORDER BY given.line""")  # noqa: S608 - our own names


async def _find_fault(tx: Transaction, batch: Sequence[FileRecord], error: DBAPIError) -> Exception:
    """The error that tells which line of a batch the database refuses; the error itself if it is about no line."""
    if not isinstance(error.orig, errors.IntegrityError | errors.DataError | errors.ProgrammingError):
        return error
    for record in batch:
        await tx.run(_SAVEPOINT)
        try:
            await _insert(tx, [record])
        except DBAPIError as single:
            return FileError(record.number, f"the {record.kind.name} {record.id} {_describe(single)}")
        await tx.run(_RELEASE)
    return FileError(batch[0].number, f"the {batch[0].kind.name}s from here on {_describe(error)}")


def _describe(error: DBAPIError) -> str:
    cause = error.orig
    if not isinstance(cause, errors.Error):
        return str(cause)
    diag = cause.diag
    if isinstance(cause, errors.UniqueViolation):
        return f"is in the tenant under another id ({diag.constraint_name})"
    if isinstance(cause, errors.ForeignKeyViolation | errors.InsufficientPrivilege):  # the policy sees both ends
        return "names a record that is neither in the tenant nor before it in the file"
    if isinstance(cause, errors.CheckViolation):
        return f"breaks the rule {diag.constraint_name}"
    if isinstance(cause, errors.NotNullViolation):
        return f"lacks {diag.column_name}"
    return f"can't be stored: {diag.message_primary}"
