"""Proving that nothing of an erasure is left: every row of every table, and the graph, is read and searched."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from memory_os.errors import StartupError
from memory_os.graph.port import GraphBackend

Tell = Callable[[str], None]

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ROWS: Final = 1_000
"""Rows that are read at a time."""

_ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "erasures": frozenset({"record_ids", "subject"}),
    "audit_log": frozenset({"target_id", "detail"}),
    "graph_tombstones": frozenset({"aggregate_id"}),
    "profiles": frozenset({"content", "diff"}),
}
"""Where ids of what was erased may stand: these tell that something was deleted, and not what.

Profiles hold ids alone, and show of them what is there.
"""

_DELETION: Final = frozenset({"aggregate_id"})
"""The same of an event that takes something out of the graph."""

_TABLES: Final = """
SELECT c.oid::regclass::text AS name, row_security_active(c.oid) AS hidden,
       has_table_privilege(c.oid, 'SELECT') AS readable,
       EXISTS (SELECT 1 FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id') AS of_tenants,
       ARRAY(SELECT a.attname::text FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
             WHERE a.attrelid = c.oid AND t.typname IN ('vector', 'halfvec')) AS vectors
FROM pg_class AS c
WHERE c.relkind IN ('r', 'p', 'm', 'f') AND NOT c.relispartition AND c.relnamespace NOT IN (
    SELECT oid FROM pg_namespace WHERE nspname IN ('pg_catalog', 'information_schema', 'pg_toast'))
ORDER BY 1
"""
"""Every table of the database, whatever it is for. The numbers of vectors are no text, and take most of the time."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for: the ids of a receipt, and a text if one is given.

    Attributes:
        ids: Ids of the records that were erased.
        text: A text, as it stands in JSON, in lower case.
        bytes_of_text: The same as Postgres shows bytes.
    """

    ids: frozenset[str]
    text: str | None = None
    bytes_of_text: str | None = None

    @classmethod
    def of(cls, ids: Iterable[UUID], wanted: str | None) -> Wanted:
        """What to look for; a blank text is in everything, so it is refused.

        Raises:
            StartupError: If the text is blank.
        """
        if wanted is None:
            return cls(frozenset(map(str, ids)))
        if not wanted.strip():
            raise StartupError("the text to look for is blank: name one that was in what was erased")
        return cls(
            frozenset(map(str, ids)), json.dumps(wanted, ensure_ascii=False)[1:-1].lower(), wanted.encode().hex()
        )

    def has_text(self, row: str) -> bool:
        """Whether the text stands in a row of JSON."""
        if self.text is None or self.bytes_of_text is None:
            return False
        return self.text in row.lower() or self.bytes_of_text in row

    def has_id(self, row: str) -> bool:
        """Whether an id stands in a row of JSON."""
        return not self.ids.isdisjoint(_ID.findall(row))


def leftovers(table: str, row: str, wanted: Wanted) -> list[str]:
    """The columns of a row in which something is left that must not be.

    Args:
        table: The row's table.
        row: The row as JSON.
        wanted: What is looked for.
    """
    if not (has_text := wanted.has_text(row)) and not wanted.has_id(row):
        return []
    values: dict[str, Any] = json.loads(row)
    allowed = _ALLOWED.get(table, frozenset())
    if table == "outbox_events" and values["event_type"] == "GRAPH_DELETE":
        allowed = _DELETION
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
    found = [name for name, value in texts.items() if name not in allowed and wanted.has_id(value)]
    if has_text:
        found += [name for name, value in texts.items() if name not in found and wanted.has_text(value)]
    return found


async def readable_tables(connection: AsyncConnection) -> Sequence[RowMapping]:
    """Every table of the database.

    Raises:
        StartupError: If the login does not see all rows of all of them: what it does not see proves nothing.
    """
    tables = (await connection.execute(text(_TABLES))).mappings().all()
    if unseen := [table["name"] for table in tables if table["hidden"] or not table["readable"]]:
        raise StartupError(
            f"this login does not see all rows of {', '.join(unseen[:3])}: give OWNER_DATABASE_URL a superuser, or a "
            "login with BYPASSRLS that may read every table"
        )
    return tables


async def read_receipt(connection: AsyncConnection, receipt_id: UUID, tenant_id: UUID | None) -> RowMapping:
    """A receipt, whose tenant need not be named.

    Raises:
        StartupError: If there is none.
    """
    query = "SELECT tenant_id, id, record_ids, position FROM erasures WHERE id = :id"
    rows = (await connection.execute(text(query), {"id": receipt_id})).mappings().all()
    found = [row for row in rows if tenant_id in (None, row["tenant_id"])]
    if not found:
        raise StartupError(f"there is no receipt {receipt_id}: GET /v1/erasures lists them")
    if len(found) > 1:
        raise StartupError(f"several tenants have a receipt {receipt_id}: name one with --tenant")
    return found[0]


async def search_tables(
    connection: AsyncConnection, tables: Sequence[RowMapping], tenant_id: UUID, wanted: Wanted, tell: Tell
) -> int:
    """Search tables, with a line for each: the tenant's rows, and all of what belongs to no tenant.

    Args:
        connection: To the database.
        tables: What `readable_tables` gave.
        tenant_id: Whose rows.
        wanted: What is looked for.
        tell: Takes each line.

    Returns:
        The number of places in which something is left.
    """
    left = 0
    for number, table in enumerate(tables, start=1):
        rows, found = 0, dict[str, int]()
        async for row in _rows_of(connection, table, tenant_id):
            rows += 1
            for column in leftovers(table["name"], row, wanted):
                found[column] = found.get(column, 0) + 1
        tell(_line(f"[{number}/{len(tables)}] {table['name']}", f"{rows} rows", found))
        left += sum(found.values())
    return left


async def _rows_of(connection: AsyncConnection, table: RowMapping, tenant_id: UUID) -> AsyncIterator[str]:
    query = f"SELECT (to_jsonb(t) - CAST(:vectors AS text[]))::text FROM {table['name']} AS t"  # noqa: S608 - from the catalog, quoted by it
    given: dict[str, Any] = {"vectors": table["vectors"]}
    if table["of_tenants"]:
        query, given = f"{query} WHERE t.tenant_id = :tenant", {**given, "tenant": tenant_id}
    options = {"yield_per": _ROWS}
    async with connection.stream(text(query), given, execution_options=options) as result:
        async for row in result.scalars():
            yield row


async def waiting_events(connection: AsyncConnection, tenant_id: UUID, position: int) -> int:
    """Events up to a position that the graph has not followed yet."""
    query = (
        "SELECT count(*) FROM outbox_events WHERE tenant_id = :tenant AND id <= :position "
        "AND status IN ('pending', 'leased', 'dead')"
    )
    return int((await connection.execute(text(query), {"tenant": tenant_id, "position": position})).scalar_one())


async def search_graph(backend: GraphBackend, tenant_id: UUID, wanted: Wanted, tell: Tell) -> int:
    """Search the tenant's graph, nodes and edges with all properties; the number of those in which something is left.

    Raises:
        GraphUnavailableError: If it does not answer.
    """
    dump = asdict(await backend.dump(tenant_id))
    left = 0
    for part, rows in dump.items():
        each = [list(pair) for pair in rows.items()] if isinstance(rows, dict) else list(rows)
        told = [msgspec.json.encode(row).decode() for row in each]
        found = sum(wanted.has_id(row) or wanted.has_text(row) for row in told)
        tell(_line(f"graph {part}", f"{len(each)} rows", {part: found} if found else {}))
        left += found
    return left


def _line(place: str, size: str, found: Mapping[str, int]) -> str:
    if not found:
        return f"ok    {place}: {size}"
    return f"LEFT  {place}: {size}, " + ", ".join(f"{count} in {name}" for name, count in found.items())
