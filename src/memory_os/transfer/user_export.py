"""The export of one user: all that belongs to them or is said about them as that user, for those who ask for it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Final

from memory_os.admin.audit import record
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.errors import NotFoundError, PermissionDeniedError
from memory_os.storage.database import Database, Scope, Transaction
from memory_os.transfer.exporting import count_rows, export_lines
from memory_os.transfer.selecting import of_user

PATIENCE: Final = "60s"
"""How long a client may take for a page of rows; after that its connection is needed for others."""


async def begin_user_export(tx: Transaction, principal: Principal, user: str, request_id: str | None) -> None:
    """Make sure that there is something to export, and put on record who asked for it.

    The audit log names the user by a digest, as receipts of erasures do: it tells the name to nobody who does not know
    it, also after the user has been erased.

    Raises:
        PermissionDeniedError: If the principal may act for nobody.
        NotFoundError: If there is nothing of this user, or the principal is another one.
    """
    if principal.user_id is None and "act_as" not in principal.scopes:
        # What a token can't read as the user it must not get from an export either.
        raise PermissionDeniedError("the export of a user needs the act_as scope, or a token that is bound to the user")
    counts = await count_rows(tx, of_user(user)) if principal.user_id in (None, user) else {}
    if not any(counts.values()):
        raise NotFoundError("there is nothing of such a user")
    export_id = new_id()
    digest = hashlib.sha256(f"{tx.tenant_id}\0{export_id}\0{user}".encode()).hexdigest()
    detail = {"export_id": export_id, "records": {kind: count for kind, count in counts.items() if count}}
    await record(tx, principal, "user.export", "user", digest, detail, request_id)


def user_lines(database: Database, principal: Principal, user: str) -> AsyncIterator[bytes]:
    """The lines of the export, as many at a time as a page of rows has.

    Args:
        database: Where from.
        principal: For whom `begin_user_export` has let it pass.
        user: Whose export it is.
    """
    return export_lines(database, Scope.of(principal), of_user(user), idle=PATIENCE)
