"""The first tokens of an installation: a root token, a tenant `default`, and a token of that tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import and_, func, or_, select, text
from sqlalchemy.dialects.postgresql import insert

from memory_os.admin.issuing import insert_token
from memory_os.admin.reach import ROOT
from memory_os.admin.tenants import MadeTenant, TenantDraft, create_tenant
from memory_os.admin.token_rights import TokenDraft
from memory_os.admin.tokens import hash_secret, split_token
from memory_os.domain.principal import INSTANCE_TENANT, Principal
from memory_os.errors import StartupError
from memory_os.storage import tables
from memory_os.storage.database import Database, Scope, Transaction, is_connection_loss

DEFAULT_TENANT = "default"
_NAME = "bootstrap"
_LOCK = 0x424F4F54
"""Advisory lock that keeps two first starts of one database apart ("BOOT")."""
_COMMAND_LINE = Principal(INSTANCE_TENANT, ROOT)
_SCOPE = Scope("memory_os_app", INSTANCE_TENANT, role=ROOT)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is needed to use a fresh installation. Tokens are kept as hashes only, so whoever gets these keeps them."""

    root_token: str = field(repr=False)
    tenant_id: str
    token: str = field(repr=False)


async def ensure_instance(owner_url: str, *, known: Credentials | None) -> Credentials:
    """Make sure of a root token, a tenant and a token that administers it.

    Args:
        owner_url: A login that may become `memory_os_app`: a superuser, or a member of that role.
        known: What an earlier call gave. As long as both tokens are valid (suspending the tenant changes nothing about
            that) it is given back; where they are lost or revoked, further ones are made, for the same tenant if it is
            still there. Older tokens stay valid: others may hold them.

    Raises:
        StartupError: If the database can't be reached, has no schema yet, or the login may not become the role.
    """
    async with _as_root(owner_url) as tx:
        await tx.run(select(func.pg_advisory_xact_lock(_LOCK)))
        if known is not None and await _still_good(tx, known):
            return known
        root = await _root_token(tx, _NAME)
        tenant_id = await _first_tenant(tx, known)
        if tenant_id is None:
            made = await create_tenant(tx, _COMMAND_LINE, TenantDraft(name=DEFAULT_TENANT), None, first=_NAME)
            return Credentials(root, str(made.tenant.id), made.token.token)
        draft = TokenDraft(role="admin", name=_NAME, scopes=["act_as"])
        issued = await insert_token(tx, _COMMAND_LINE, tenant_id, draft, None)
        return Credentials(root, str(tenant_id), issued.token)


async def make_root_token(owner_url: str, name: str) -> str:
    """A further root token, for an operator at the command line.

    Raises:
        StartupError: As `ensure_instance`.
    """
    async with _as_root(owner_url) as tx:
        return await _root_token(tx, name)


async def make_tenant(owner_url: str, draft: TenantDraft) -> MadeTenant:
    """A further tenant with its first token, for an operator at the command line.

    Raises:
        StartupError: As `ensure_instance`.
        InvalidInputError: If name or time zone can't be accepted.
    """
    async with _as_root(owner_url) as tx:
        return await create_tenant(tx, _COMMAND_LINE, draft, None)


@asynccontextmanager
async def _as_root(owner_url: str) -> AsyncIterator[Transaction]:
    """A transaction as the instance's root under row-level security, so that it is the same for every kind of login."""
    database = Database(owner_url, pool_size=1)
    try:
        await check_login(database)
        async with database.transaction(_SCOPE) as tx:
            yield tx
    finally:
        await database.close()


async def check_login(database: Database) -> None:
    """Make sure that a command's login reaches the database and may become the API's role.

    Raises:
        StartupError: With the mend, if not.
    """
    facts = text(
        "SELECT session_user AS login, to_regclass('tokens') IS NOT NULL AS migrated, "
        "(SELECT pg_has_role(session_user, oid, 'SET') FROM pg_roles WHERE rolname = 'memory_os_app') AS member"
    )
    try:
        async with database.engine.connect() as connection:
            found = (await connection.execute(facts)).mappings().one()
    except Exception as error:
        if not is_connection_loss(error):
            raise
        raise StartupError("the database can't be reached: check OWNER_DATABASE_URL and DATABASE_URL") from None
    if not found["migrated"] or found["member"] is None:
        raise StartupError("the database holds no schema of Memory OS yet: run `memory-os migrate`")
    if not found["member"]:
        raise StartupError(
            f"the login {found['login']} may not become memory_os_app: run GRANT memory_os_app TO {found['login']}, "
            "or set OWNER_DATABASE_URL to a superuser"
        )


async def _root_token(tx: Transaction, name: str) -> str:
    await tx.run(insert(tables.tenants).values(tenant_id=INSTANCE_TENANT, name="instance").on_conflict_do_nothing())
    return (await insert_token(tx, _COMMAND_LINE, INSTANCE_TENANT, TokenDraft(role=ROOT, name=name), None)).token


async def _still_good(tx: Transaction, known: Credentials) -> bool:
    tenant_id = _uuid(known.tenant_id)
    if tenant_id is None:
        return False
    return await _is_live(tx, known.root_token, INSTANCE_TENANT) and await _is_live(tx, known.token, tenant_id)


async def _is_live(tx: Transaction, token: str, tenant_id: UUID) -> bool:
    parts = split_token(token)
    if parts is None:
        return False
    columns = tables.tokens.c
    statement = select(columns.id).where(
        and_(
            columns.tenant_id == tenant_id,
            columns.prefix == parts[0],
            columns.secret_hash == hash_secret(parts[1]),
            columns.revoked_at.is_(None),
            or_(columns.expires_at.is_(None), columns.expires_at > func.now()),
        )
    )
    return await tx.row(statement) is not None


async def _first_tenant(tx: Transaction, known: Credentials | None) -> UUID | None:
    """The tenant of the known credentials if it is there, else the oldest one of the default name."""
    columns = tables.tenants.c
    candidates: list[Any] = [columns.name == DEFAULT_TENANT]
    if known is not None and (tenant_id := _uuid(known.tenant_id)) is not None:
        candidates.insert(0, columns.tenant_id == tenant_id)
    for condition in candidates:
        statement = select(columns.tenant_id).where(condition, columns.tenant_id != INSTANCE_TENANT)
        if (row := await tx.row(statement.order_by(columns.created_at, columns.tenant_id).limit(1))) is not None:
            found: UUID = row["tenant_id"]
            return found
    return None


def _uuid(value: str) -> UUID | None:
    try:
        return UUID(value)
    except ValueError:
        return None
