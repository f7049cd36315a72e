"""`memory-os export` and `memory-os import`: each returns the lines to print on standard error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from uuid import UUID

from sqlalchemy import select, text

from memory_os.admin.audit import record
from memory_os.admin.bootstrap import check_login
from memory_os.admin.reach import ROOT
from memory_os.domain.principal import INSTANCE_TENANT, Principal
from memory_os.embedding.port import Embedder, EmbedderUnavailableError
from memory_os.errors import StartupError
from memory_os.outbox.events import Outbox
from memory_os.storage import tables
from memory_os.storage.checks import check_embedder
from memory_os.storage.database import Database, Scope, Transaction, is_connection_loss
from memory_os.storage.revision import SCHEMA_REVISION
from memory_os.transfer.embedding import embed_entities
from memory_os.transfer.exporting import Advance, export_lines
from memory_os.transfer.files import reading, writing
from memory_os.transfer.importing import Imported, import_records
from memory_os.transfer.progress import show_progress
from memory_os.transfer.reading import FileReader
from memory_os.transfer.selecting import EVERYTHING

UNIT = "records"


@contextmanager
def database_url(home: Path | None, url: Callable[[], str]) -> Iterator[str]:
    """Where a command connects: the Postgres of a home if one is named, else what the settings say."""
    if home is None:
        yield url()
        return
    from memory_os.backup.homes import open_home  # noqa: PLC0415 - the embedded stores are an extra

    with open_home(home) as postgres:
        yield postgres.owner_url


def export_tenant(url: str, tenant_id: UUID, target: Path) -> list[str]:
    """Write all that is durable of a tenant to a file, or to standard output for `-`.

    Raises:
        StartupError: With the mend; no file is left then.
    """
    return asyncio.run(_export(url, tenant_id, target))


def import_tenant(url: str, tenant_id: UUID, source: Path, embedder: Embedder, outbox: Outbox) -> list[str]:
    """Read a file, or standard input for `-`, into a tenant.

    Raises:
        StartupError: With the line at fault, or the mend; nothing is changed then.
    """
    return asyncio.run(_import(url, tenant_id, source, embedder, outbox))


@asynccontextmanager
async def _opened(url: str, tenant_id: UUID) -> AsyncIterator[tuple[Database, Scope]]:
    """The database of a command, and a scope in the tenant: whoever runs commands is the instance's root."""
    database = Database(url, pool_size=2)
    scope = Scope("memory_os_app", tenant_id, role=ROOT)
    try:
        await check_login(database)
        await database.run(scope, _check)
        yield database, scope
    except Exception as error:
        if not is_connection_loss(error):
            raise
        raise StartupError("the database went away, and nothing was changed: repeat the command") from None
    finally:
        await database.close()


async def _check(tx: Transaction) -> None:
    revision = await tx.row(text("SELECT version_num FROM alembic_version"))
    if revision is None or revision["version_num"] != SCHEMA_REVISION:
        raise StartupError(f"the schema is not at revision {SCHEMA_REVISION}: run `memory-os migrate`")
    column = tables.tenants.c.tenant_id
    known = tx.tenant_id != INSTANCE_TENANT and await tx.row(select(column).where(column == tx.tenant_id))
    if not known:
        raise StartupError(f"there is no tenant {tx.tenant_id}: make one with `memory-os tenant create NAME`")


async def _export(url: str, tenant_id: UUID, target: Path) -> list[str]:
    counted: dict[str, int] = {}
    async with _opened(url, tenant_id) as (database, scope):
        with ExitStack() as stack:

            def begun(counts: dict[str, int]) -> Advance:
                counted.update(counts)
                return stack.enter_context(show_progress("exporting", sum(counts.values()), UNIT))

            # Before anything leaves: what was read is on record, whatever becomes of the file.
            await database.run(scope, lambda tx: _note(tx, "tenant.export", {}))
            file = stack.enter_context(writing(target))
            async for lines in export_lines(database, scope, EVERYTHING, begun=begun):
                file.write(lines)
    return [f"{sum(counted.values())} records exported: {_told(counted)}"]


async def _import(url: str, tenant_id: UUID, source: Path, embedder: Embedder, outbox: Outbox) -> list[str]:
    async with _opened(url, tenant_id) as (database, scope):
        await _check_embedder(database, scope, embedder)
        with reading(source) as stream:
            reader = FileReader(stream, tenant_id)
            with show_progress("importing", reader.total, UNIT) as advance:
                done = await _store(database, scope, outbox, reader, advance)
        return [*_outcome(done), *await _embed(database, scope, embedder, done)]


async def _check_embedder(database: Database, scope: Scope, embedder: Embedder) -> None:
    """Refuse another embedder than that of the stored vectors before anything is stored; one that is down can wait."""
    try:
        await check_embedder(database, scope.db_role, await embedder.open())
    except EmbedderUnavailableError:
        return


async def _store(database: Database, scope: Scope, outbox: Outbox, reader: FileReader, advance: Advance) -> Imported:
    async with database.transaction(scope) as tx:
        await tx.hot("export_settings", {"idle": "0"})  # whoever writes into a pipe takes their time
        done = await import_records(tx, outbox, reader, advance)
        made = {kind: count for kind, count in done.made.items() if count}
        await _note(tx, "tenant.import", {"records": made, "there": sum(done.there.values())})
    return done


async def _embed(database: Database, scope: Scope, embedder: Embedder, done: Imported) -> list[str]:
    try:
        with show_progress("embedding", done.made["entity"], "entities") as advance:
            await embed_entities(database, scope, embedder, advance)
    except EmbedderUnavailableError as error:
        return [f"entities have no vectors yet ({error}): repeat the import once the embedder answers"]
    finally:
        await embedder.close()
    return ["workers make the vectors of memories and passages, and the graph"]


async def _note(tx: Transaction, action: str, detail: dict[str, object]) -> None:
    await record(tx, Principal(tx.tenant_id, ROOT), action, "tenant", tx.tenant_id, detail, None)


def _outcome(done: Imported) -> list[str]:
    there = sum(done.there.values())
    told = [f"{sum(done.made.values())} records imported: {_told(done.made)}"]
    return [*told, f"{there} were there already: {_told(done.there)}"] if there else told


def _told(counts: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in counts.items() if count) or "none"
