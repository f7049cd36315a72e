"""Issuing tokens: create, list, rotate, revoke."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct
from sqlalchemy import func, insert, select, update

from memory_os.admin.audit import record
from memory_os.admin.reach import ROOT, named_by_root, named_or_own, require_tenant
from memory_os.admin.token_rights import TokenDraft, check_rights, check_token
from memory_os.admin.tokens import make_token
from memory_os.domain.ids import new_id
from memory_os.domain.principal import INSTANCE_TENANT, Principal
from memory_os.errors import ConflictError, FieldError, InvalidInputError, NotFoundError
from memory_os.storage import tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = tables.tokens


class Token(Struct):
    """A token without its secret."""

    id: UUID
    tenant_id: UUID
    prefix: str
    name: str
    role: str
    scopes: list[str]
    user_id: str | None
    groups: list[str]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class IssuedToken(Token):
    """A token in the one answer that shows it: `token` is `mos_<prefix>_<secret>`."""

    token: Annotated[str, Meta(description="Shown this once; it can't be read again.")]


def token_of(row: Mapping[Any, Any]) -> Token:
    """A row of `tokens` as its admin sees it."""
    return Token(**{name: row[name] for name in Token.__struct_fields__})


async def create_token(tx: Transaction, principal: Principal, draft: TokenDraft, request_id: str | None) -> IssuedToken:
    """Make a token.

    Raises:
        UnknownTermError, InvalidInputError, PermissionDeniedError: As `check_token`, or for its tenant.
        NotFoundError: If the tenant that root names is not there.
    """
    check_token(draft, principal)
    tenant_id = _tenant_for(principal, draft)
    if tenant_id not in (INSTANCE_TENANT, principal.tenant_id):
        await require_tenant(tx, tenant_id)
    return await insert_token(tx, principal, tenant_id, draft, request_id)


def _tenant_for(principal: Principal, draft: TokenDraft) -> UUID:
    if principal.role != ROOT:
        return named_or_own(principal, draft.tenant_id)
    if draft.role != ROOT:
        return named_by_root(principal, draft.tenant_id, "/tenant_id")
    if draft.tenant_id not in (None, INSTANCE_TENANT):
        raise InvalidInputError(
            "a root token belongs to the instance", errors=[FieldError("/tenant_id", "must be left out")]
        )
    return INSTANCE_TENANT


async def insert_token(
    tx: Transaction, principal: Principal, tenant_id: UUID, draft: TokenDraft, request_id: str | None
) -> IssuedToken:
    """Store a checked token; see `create_token`."""
    made = make_token()
    row = await tx.row(
        insert(_TABLE)
        .values(
            tenant_id=tenant_id,
            id=new_id(),
            prefix=made.prefix,
            secret_hash=made.secret_hash,
            name=draft.name,
            role=draft.role,
            scopes=sorted(set(draft.scopes)),
            user_id=draft.user_id,
            groups=sorted(set(draft.groups)),
            expires_at=draft.expires_at,
        )
        .returning(_TABLE)
    )
    return await _issued(tx, principal, "token.create", row, made.token, request_id)


async def _issued(
    tx: Transaction,
    principal: Principal,
    action: str,
    row: Mapping[Any, Any] | None,
    secret: str,
    request_id: str | None,
) -> IssuedToken:
    if row is None:
        raise AssertionError("a row that was just written can't be gone")
    detail = {key: row[key] for key in ("name", "role", "scopes", "user_id", "groups", "expires_at")}
    await record(tx, principal, action, "token", row["id"], detail, request_id, tenant_id=row["tenant_id"])
    fields = {name: row[name] for name in Token.__struct_fields__}
    return IssuedToken(**fields, token=secret)


async def list_tokens(tx: Transaction, tenant_id: UUID, cursor: str | None, limit: int) -> Page[Token]:
    """A tenant's tokens, newest first, revoked and expired ones too; their secrets are nowhere."""
    statement = select(_TABLE).where(_TABLE.c.tenant_id == tenant_id)
    rows = await tx.rows(newest_first(statement, _TABLE.c.created_at, _TABLE.c.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["created_at"], row["id"]))
    return Page([token_of(row) for row in page], next_cursor)


async def rotate_token(
    tx: Transaction, principal: Principal, tenant_id: UUID, token_id: UUID, request_id: str | None
) -> IssuedToken:
    """Give a token a new secret, with the same id and rights; the old one is dead when this commits.

    Raises:
        NotFoundError: If there is no such token.
        ConflictError: If it is revoked or expired: rotating must not bring a dead token back.
        PermissionDeniedError: If the token has more rights than the principal, who would hold it then.
    """
    row = await _locked(tx, tenant_id, token_id)
    check_rights(principal, row["role"], row["scopes"], row["user_id"], row["groups"])
    if row["revoked_at"] is not None:
        raise ConflictError("the token is revoked: make a new one")
    if row["expires_at"] is not None and row["expires_at"] <= datetime.now(UTC):
        raise ConflictError("the token has expired: make a new one")
    made = make_token()
    changed = await tx.row(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == tenant_id, _TABLE.c.id == token_id)
        .values(prefix=made.prefix, secret_hash=made.secret_hash)
        .returning(_TABLE)
    )
    return await _issued(tx, principal, "token.rotate", changed, made.token, request_id)


async def revoke_token(
    tx: Transaction, principal: Principal, tenant_id: UUID, token_id: UUID, request_id: str | None
) -> Token:
    """Revoke a token for good; a second time changes nothing.

    Raises:
        NotFoundError: If there is no such token.
    """
    row = await _locked(tx, tenant_id, token_id)
    if row["revoked_at"] is not None:
        return token_of(row)
    changed = await tx.row(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == tenant_id, _TABLE.c.id == token_id)
        .values(revoked_at=func.now())
        .returning(_TABLE)
    )
    if changed is None:
        raise AssertionError("a locked row can't be gone")
    detail = {"name": row["name"], "role": row["role"]}
    await record(tx, principal, "token.revoke", "token", token_id, detail, request_id, tenant_id=tenant_id)
    return token_of(changed)


async def _locked(tx: Transaction, tenant_id: UUID, token_id: UUID) -> Mapping[Any, Any]:
    statement = select(_TABLE).where(_TABLE.c.tenant_id == tenant_id, _TABLE.c.id == token_id)
    row = await tx.row(statement.with_for_update())
    if row is None:
        raise NotFoundError("there is no such token")
    return row
