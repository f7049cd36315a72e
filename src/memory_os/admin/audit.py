"""The audit log: who did what to which record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import insert, select
from sqlalchemy.engine import RowMapping

from memory_os.admin.audit_targets import Target, hidden_targets
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.storage import provenance_tables, tables
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page, cut, encode_cursor, newest_first

_TABLE = tables.audit_log


class AuditEntry(msgspec.Struct):
    """One act; `token_id` is null for what the command line did."""

    id: UUID
    tenant_id: UUID
    at: datetime
    token_id: UUID | None
    role: str
    user_id: str | None
    action: str
    target_type: str
    target_id: str
    detail: dict[str, Any]
    request_id: str | None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What a list is narrowed to; None leaves a field alone. Without a tenant it shows all, to root."""

    tenant_id: UUID | None = None
    action: str | None = None
    target_type: str | None = None
    target_id: str | None = None


async def list_entries(tx: Transaction, wanted: AuditFilter, cursor: str | None, limit: int) -> Page[AuditEntry]:
    """Audit entries, newest first, one page at a time; of what people wrote, what this reader may read."""
    columns, contents = _TABLE.c, provenance_tables.audit_contents.c
    written = (contents.tenant_id == columns.tenant_id) & (contents.audit_id == columns.id)
    statement = select(_TABLE, contents.content).outerjoin(provenance_tables.audit_contents, written)
    for name in ("tenant_id", "action", "target_type", "target_id"):
        if (value := getattr(wanted, name)) is not None:
            statement = statement.where(columns[name] == value)
    rows = await tx.rows(newest_first(statement, columns.at, columns.id, cursor, limit))
    page, next_cursor = cut(rows, limit, lambda row: encode_cursor(row["at"], row["id"]))
    hidden = await hidden_targets(tx, [_target_of(row) for row in page if row["content"]])
    return Page([_entry_of(row, withheld=_target_of(row) in hidden) for row in page], next_cursor)


def _target_of(row: RowMapping) -> Target:
    return row["target_type"], row["target_id"]


def _entry_of(row: RowMapping, *, withheld: bool) -> AuditEntry:
    told = {name: row[name] for name in AuditEntry.__struct_fields__ if name != "detail"}
    content = {} if withheld else row["content"] or {}
    return AuditEntry(**told, detail={**row["detail"], **content})


async def record(
    tx: Transaction,
    principal: Principal,
    action: str,
    target_type: str,
    target_id: UUID | int | str,
    detail: Mapping[str, Any],
    request_id: str | None,
    *,
    tenant_id: UUID | None = None,
    content: Mapping[str, Any] | None = None,
    readers: Sequence[Audience] = (),
) -> None:
    """Write an audit entry in the transaction of the act itself.

    Args:
        tx: The unit of work.
        principal: Who acts.
        action: What they do, as `area.verb`.
        target_type: The kind of record acted on.
        target_id: Its id.
        detail: What a reviewer needs beside that: ids, states, counts, and nothing that people wrote.
        request_id: The request that did it.
        tenant_id: The tenant whose log it belongs to: the one acted on. By default the one that `tx` has entered.
        content: What people wrote, such as the values before a change; it is shown to `readers` alone.
        readers: The readers of the records that it was written in: who is among all of them is shown it.
    """
    ident, owner = new_id(), tenant_id or tx.tenant_id
    await tx.run(
        insert(_TABLE).values(
            tenant_id=owner,
            id=ident,
            token_id=principal.token_id,
            role=principal.role,
            user_id=principal.user_id,
            action=action,
            target_type=target_type,
            target_id=str(target_id),
            detail=msgspec.to_builtins(dict(detail), builtin_types=()),
            request_id=request_id,
        )
    )
    if content:
        audience = reduce(Audience.meet, readers, Audience(everybody=True))
        await tx.run(
            insert(provenance_tables.audit_contents).values(
                tenant_id=owner,
                audit_id=ident,
                target_type=target_type,
                target_id=str(target_id),
                content=msgspec.to_builtins(dict(content), builtin_types=()),
                **audience.columns(),
            )
        )
