"""`memory-os doctor`: looks at everything a start depends on, and says the mend of whatever is wrong."""

from __future__ import annotations

from sqlalchemy import text

from memory_os.app import build_embedder, build_graph
from memory_os.embedding.port import EmbeddingError
from memory_os.errors import StartupError
from memory_os.graph.port import GraphError
from memory_os.settings import Settings
from memory_os.storage.checks import check_database, check_embedder
from memory_os.storage.database import Database

Finding = tuple[str, str | None]
"""What was looked at, and what is wrong with it; None where nothing is."""

_UNPROTECTED = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND NOT a.attisdropped
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1
"""


async def examine(settings: Settings) -> list[Finding]:
    """Examine roles, schema, row-level security, embedder and graph; never raises for what it finds."""
    findings: list[Finding] = []
    for role, url in (("memory_os_app", settings.service_url()), ("memory_os_worker", settings.worker_url())):
        database = Database(url, pool_size=1, prepare=settings.database_prepare)
        try:
            fault = await _fault_of_database(database, role)
            findings.append((f"database as {role}", fault))
            if fault is None and role == "memory_os_app":
                findings.append(("row-level security", await _fault_of_policies(database)))
                findings.append(("embedder", await _fault_of_embedder(database, role, settings)))
        finally:
            await database.close()
    findings.append(("graph", await _fault_of_graph(settings)))
    return findings


async def _fault_of_database(database: Database, role: str) -> str | None:
    try:
        await check_database(database, role)
    except StartupError as error:
        return str(error)
    return None


async def _fault_of_policies(database: Database) -> str | None:
    async with database.engine.connect() as connection:
        names = (await connection.execute(text(_UNPROTECTED))).scalars().all()
    return f"not forced on {', '.join(names)}: run `memory-os migrate`" if names else None


async def _fault_of_embedder(database: Database, role: str, settings: Settings) -> str | None:
    embedder = build_embedder(settings)
    try:
        await check_embedder(database, role, await embedder.open())
    except (StartupError, EmbeddingError) as error:
        return str(error)
    finally:
        await embedder.close()
    return None


async def _fault_of_graph(settings: Settings) -> str | None:
    graph = build_graph(settings)
    if graph is None:
        return "off: set ENABLE_GRAPH_MEMORY=true to use it"
    try:
        await graph.backend.open()
        await graph.backend.ping()
    except (GraphError, OSError) as error:
        return f"{error}: check FALKOR_HOST, FALKOR_PORT and FALKOR_PASSWORD"
    finally:
        await graph.backend.close()
    return None
