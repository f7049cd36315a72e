"""What must hold of the database before anything is served; each refusal says the mend in one line."""

from __future__ import annotations

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from memory_os.embedding.port import EmbedderIdentity
from memory_os.errors import StartupError
from memory_os.storage.database import Database, Scope, Transaction
from memory_os.storage.revision import LEAST_SERVER_VERSION, SCHEMA_REVISION
from memory_os.storage.tables import embedding_models

_LEAST_VECTOR = (0, 8)


async def check_database(database: Database, db_role: str) -> None:
    """Check role, server, extension and schema.

    Args:
        database: As the settings name it.
        db_role: The role that the process will enter: `memory_os_app` or `memory_os_worker`.

    Raises:
        StartupError: With one line that says what to do.
    """
    try:
        async with database.engine.connect() as connection:
            facts = (
                (
                    await connection.execute(
                        text(
                            "SELECT session_user AS login, r.rolsuper, r.rolbypassrls, "
                            "current_setting('server_version_num')::int AS server, "
                            "(SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector, "
                            "to_regclass('alembic_version') IS NOT NULL AS migrated, "
                            "(SELECT pg_has_role(session_user, oid, 'SET') FROM pg_roles WHERE rolname = :role) "
                            "AS member "
                            "FROM pg_roles r WHERE r.rolname = session_user"
                        ),
                        {"role": db_role},
                    )
                )
                .mappings()
                .one()
            )
    except (DBAPIError, OSError) as error:
        cause = getattr(error, "orig", None) or error
        raise StartupError(f"the database can't be reached: {str(cause).splitlines()[0]}; check DATABASE_URL") from None
    if facts["rolsuper"] or facts["rolbypassrls"]:
        raise StartupError(
            f"the login {facts['login']} is superuser or has BYPASSRLS, which would switch tenant isolation off: "
            f"connect as {db_role}, or as a plain login that is a member of it"
        )
    if facts["server"] < LEAST_SERVER_VERSION:
        raise StartupError(f"Postgres {facts['server'] // 10000} is too old: Memory OS needs Postgres 18")
    if not facts["migrated"] or facts["vector"] is None or facts["member"] is None:
        raise StartupError("the database holds no schema of Memory OS yet: run `memory-os migrate`")
    if tuple(int(part) for part in facts["vector"].split(".")[:2]) < _LEAST_VECTOR:
        raise StartupError(f"pgvector {facts['vector']} is too old: update the extension to 0.8 or newer")
    if not facts["member"]:
        raise StartupError(
            f"the login {facts['login']} may not become {db_role}: run GRANT {db_role} TO {facts['login']}, "
            f"or connect as {db_role}"
        )
    await _check_revision(database, db_role)


async def _check_revision(database: Database, db_role: str) -> None:
    async with database.transaction(Scope(db_role)) as tx:
        row = await tx.row(text("SELECT version_num FROM alembic_version"))
    found = row["version_num"] if row else None
    if found != SCHEMA_REVISION:
        raise StartupError(
            f"the schema is at revision {found}, this version needs {SCHEMA_REVISION}: run `memory-os migrate`"
        )


async def check_embedder(database: Database, db_role: str, identity: EmbedderIdentity) -> None:
    """Hold the embedder against the model that the stored vectors are of; the first start settles it.

    Raises:
        StartupError: If model or dimension differ from what is stored.
    """
    async with database.transaction(Scope(db_role)) as tx:
        current = await current_model(tx)
        if current is None:
            values = {"model": identity.model, "dimension": identity.dimension, "current": True}
            await tx.run(insert(embedding_models).values(values).on_conflict_do_nothing())
            current = await current_model(tx)
    if current != identity:
        stored = f"{current.model} ({current.dimension} dimensions)" if current else "another model"
        raise StartupError(
            f"the stored vectors are of {stored}, the settings name {identity.model} ({identity.dimension}): set the "
            "EMBEDDING_ settings back, or run `memory-os reembed` to make all vectors anew"
        )


async def current_model(tx: Transaction) -> EmbedderIdentity | None:
    """The model that vectors are made with; None before the first start."""
    columns = embedding_models.c
    row = await tx.row(select(columns.model, columns.dimension).where(columns.current))
    return EmbedderIdentity(row["model"], row["dimension"]) if row else None
