"""Storing and changing sources. They have no node of their own in the graph; links to them do."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, update
from sqlalchemy.dialects.postgresql import insert

from memory_os.admin.audit import record
from memory_os.changes import changed_columns, values_before
from memory_os.checking import check_version
from memory_os.domain.audiences import Audience
from memory_os.domain.ids import new_id
from memory_os.domain.principal import Principal
from memory_os.errors import ConflictError
from memory_os.memories.writing import Embedded
from memory_os.sources.checking import check_patch
from memory_os.sources.model import Source, SourceDraft, SourcePatch, StoredSource
from memory_os.sources.ownership import check_own
from memory_os.sources.passages import same_passages, store_passages
from memory_os.sources.reading import find_source, get_source, source_columns, source_of
from memory_os.storage import provenance_tables
from memory_os.storage.database import Transaction

_TABLE = provenance_tables.sources


async def store_source(
    tx: Transaction, principal: Principal, draft: SourceDraft, embedded: Embedded
) -> tuple[StoredSource, bool]:
    """Store a checked source with its passages, or find it where its id was stored with the same kind and title before.

    Args:
        tx: The unit of work.
        principal: Who writes.
        draft: The source.
        embedded: The vectors of its passages.

    Returns:
        The source, and whether it is new.

    Raises:
        ConflictError: If its id or one of its passages' is taken by another record, or it has other passages.
    """
    ident = draft.id or new_id()
    values = {
        "tenant_id": tx.tenant_id,
        "id": ident,
        "kind": draft.kind,
        "title": draft.title,
        "uri": draft.uri,
        "author": draft.author,
        "source_date": draft.source_date,
        "metadata": draft.metadata,
        "visibility": draft.visibility,
        "user_id": principal.user_id,
        "reader_users": draft.readers.users if draft.readers else [],
        "reader_groups": draft.readers.groups if draft.readers else [],
        "created_by": principal.token_id,
    }
    statement = insert(_TABLE).values(values).on_conflict_do_nothing(index_elements=["tenant_id", "id"])
    row = await tx.row(statement.returning(*source_columns()))
    if row is not None:
        return StoredSource(source_of(row), await store_passages(tx, ident, draft.passages, embedded)), True
    known = await find_source(tx, ident)
    if known is None or (known.kind, known.title) != (draft.kind, draft.title):
        raise ConflictError(
            f"the id {ident} is taken by another record: leave the id out, or change that record with PATCH"
        )
    places = await same_passages(tx, ident, draft.passages)
    if places is None:
        raise ConflictError(f"the source {ident} has other passages: add to these with POST .../passages")
    return StoredSource(known, places), False


async def change_source(
    tx: Transaction,
    principal: Principal,
    source_id: UUID,
    patch: SourcePatch,
    *,
    if_match: int | None,
    request_id: str | None,
) -> Source:
    """Apply a patch under the source's row lock, with an audit entry of what was there before.

    Passages, their vectors and evidence follow its readers; memories that were taken from it keep theirs.

    Raises:
        NotFoundError: If this reader sees no such source.
        PreconditionFailedError: If `if_match` is not its version.
        InvalidInputError: If the patch breaks a rule.
        PermissionDeniedError: If it is another user's, and the caller is no reviewer.
    """
    current = await get_source(tx, source_id, lock=True)
    check_version(if_match, current.version)
    check_own(principal, current)
    check_patch(patch, current, principal)
    values = changed_columns(patch, current)
    if not values:
        return current
    before = values_before(current, values)
    changed = await tx.row(
        update(_TABLE)
        .where(_TABLE.c.tenant_id == tx.tenant_id, _TABLE.c.id == source_id)
        .values(**values, version=_TABLE.c.version + 1, updated_at=func.now())
        .returning(*source_columns())
    )
    if changed is None:
        raise AssertionError("a locked row can't be gone")
    after = source_of(changed)
    await record(
        tx,
        principal,
        "source.change",
        "source",
        source_id,
        {"fields": sorted(before)},
        request_id,
        content={"before": before},
        readers=[Audience.of(current), Audience.of(after)],
    )
    return after
