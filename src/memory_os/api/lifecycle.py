"""`/v1/memories/{id}/...`: what becomes of a memory: superseded, done, disputed, withdrawn, restored; its history."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.params import FromPath, JSONBody

from memory_os.api.calls import IDEMPOTENCY_KEY, IF_MATCH, ActiveCall, Answer, Call, etag, parse_if_match
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.checking import check_version, text_faults
from memory_os.domain.shapes import Cursor
from memory_os.errors import FieldError, InvalidInputError, NotFoundError
from memory_os.memories.disputing import dispute
from memory_os.memories.history import list_history
from memory_os.memories.lifecycle_model import (
    ActedMemory,
    Dispute,
    HistoryEntry,
    Retraction,
    SupersededMemory,
    Supersession,
)
from memory_os.memories.model import Memory
from memory_os.memories.reading import get_memory
from memory_os.memories.replacing import Replacement, check_body, check_old, draft_of, replace_memory
from memory_os.memories.stepping import StepKind, step
from memory_os.memories.undoing import undo_act
from memory_os.storage.database import Transaction
from memory_os.storage.pages import Page

Key = Annotated[str | None, IDEMPOTENCY_KEY]
Version = Annotated[str | None, IF_MATCH]


class LifecycleController(Controller):
    """What becomes of memories."""

    path = "/v1/memories/{memory_id:uuid}"
    tags = ["memories"]  # noqa: RUF012 - Litestar reads it from the class

    @post("/supersede", operation_id="supersedeMemory", opt={"permission": "write"}, summary="Supersede a memory")
    async def supersede(
        self,
        memory_id: FromPath[UUID],
        data: JSONBody[Supersession],
        call: Call,
        idempotency_key: Key = None,
        if_match: Version = None,
    ) -> Response[SupersededMemory]:
        """Let a new memory, or a stored one (`by`), take the place of this one; its context moves there."""
        call.act_for(data.user_id)
        check_body(data)
        if (known := await call.repeated()) is not None:
            return known
        old = await call.read(lambda tx: get_memory(tx, memory_id))
        replacement = Replacement(by=data.by)
        if data.by is None:
            draft = draft_of(data, old, call.principal)
            check_old(old, draft)
            call.services.memories.check(draft, call.principal)
            replacement = Replacement(draft=draft, embedded=await call.services.memories.embed_drafts([draft]))
        version = parse_if_match(if_match)

        async def work(tx: Any) -> Answer[SupersededMemory]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            service, who = call.services.memories, call.principal
            done = await replace_memory(
                tx, service, who, memory_id, replacement, if_match=version, request_id=call.request_id
            )
            return Answer(done, 201, etag(done.memory.version))

        return await call.write(work)

    @post("/complete", operation_id="completeMemory", opt={"permission": "write"}, status_code=200, summary="Complete")
    async def complete(
        self, memory_id: FromPath[UUID], call: Call, idempotency_key: Key = None, if_match: Version = None
    ) -> Response[ActedMemory]:
        """Mark what was to be done as done: a Goal, Project, Commitment or Decision."""
        return await _step(call, memory_id, "complete", if_match)

    @post("/abandon", operation_id="abandonMemory", opt={"permission": "write"}, status_code=200, summary="Give up")
    async def abandon(
        self, memory_id: FromPath[UUID], call: Call, idempotency_key: Key = None, if_match: Version = None
    ) -> Response[ActedMemory]:
        """Mark what was to be done as given up."""
        return await _step(call, memory_id, "abandon", if_match)

    @post("/archive", operation_id="archiveMemory", opt={"permission": "write"}, status_code=200, summary="Archive")
    async def archive(
        self, memory_id: FromPath[UUID], call: Call, idempotency_key: Key = None, if_match: Version = None
    ) -> Response[ActedMemory]:
        """Put a memory out of the way: retrieval finds it with `include: ["history"]` only."""
        return await _step(call, memory_id, "archive", if_match)

    @post("/dispute", operation_id="disputeMemory", opt={"permission": "write"}, status_code=200, summary="Dispute")
    async def dispute(
        self,
        memory_id: FromPath[UUID],
        call: Call,
        data: JSONBody[Dispute | None] = None,
        idempotency_key: Key = None,
        if_match: Version = None,
    ) -> Response[ActedMemory]:
        """Contradict a memory, by itself or by another one (`against`); both are shown as disputed from then on."""
        given = data or Dispute()
        call.act_for(given.user_id)
        _check_reason(given)
        version = parse_if_match(if_match)

        async def work(tx: Any) -> Answer[ActedMemory]:  # noqa: ANN401 - as above
            memory = await get_memory(tx, memory_id)
            check_version(version, memory.version)
            against = None if given.against is None else await _against(tx, given.against)
            done = await dispute(
                tx,
                call.services.outbox,
                call.principal,
                memory,
                against=against,
                reason=given.reason,
                request_id=call.request_id,
            )
            return Answer(ActedMemory(done.memory, done.act_id, done.position), headers=etag(done.memory.version))

        return await call.write(work)

    @post("/retract", operation_id="retractMemory", opt={"permission": "write"}, status_code=200, summary="Retract")
    async def retract(
        self,
        memory_id: FromPath[UUID],
        call: Call,
        data: JSONBody[Retraction | None] = None,
        idempotency_key: Key = None,
        if_match: Version = None,
    ) -> Response[ActedMemory]:
        """Withdraw a memory: gone from retrieval, kept in history, and restorable; `DELETE` leaves nothing of it."""
        given = data or Retraction()
        call.act_for(given.user_id)
        _check_reason(given)
        return await _step(call, memory_id, "retract", if_match, given.reason)

    @post("/restore", operation_id="restoreMemory", opt={"permission": "write"}, status_code=200, summary="Restore")
    async def restore(
        self, memory_id: FromPath[UUID], call: Call, idempotency_key: Key = None, if_match: Version = None
    ) -> Response[ActedMemory]:
        """Make a memory active again. To have all as it was before an act, undo the act instead."""
        return await _step(call, memory_id, "restore", if_match)

    @get("/history", operation_id="listMemoryHistory", opt={"permission": "read"}, summary="The history of a memory")
    async def history(
        self,
        memory_id: FromPath[UUID],
        call: Call,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[HistoryEntry]:
        """List what was done to a memory and by whom, newest first; its creation is the last entry."""
        return await call.read(lambda tx: list_history(tx, call.principal, memory_id, cursor, limit))

    @post(
        "/acts/{act_id:uuid}/undo",
        operation_id="undoMemoryAct",
        opt={"permission": "write"},
        status_code=200,
        summary="Undo an act",
    )
    async def undo(
        self, memory_id: FromPath[UUID], act_id: FromPath[UUID], call: Call, idempotency_key: Key = None
    ) -> Response[ActedMemory]:
        """Put back all that an act changed. 409 names what was done since, which has to be undone first."""

        async def work(tx: Any) -> Answer[ActedMemory]:  # noqa: ANN401 - as above
            outbox, who = call.services.outbox, call.principal
            done = await undo_act(tx, outbox, who, memory_id, act_id, call.request_id)
            return Answer(done, headers=etag(done.memory.version))

        return await call.write(work)


async def _step(
    call: ActiveCall, memory_id: UUID, kind: StepKind, if_match: str | None, reason: str | None = None
) -> Response[ActedMemory]:
    version = parse_if_match(if_match)

    async def work(tx: Any) -> Answer[ActedMemory]:  # noqa: ANN401 - as above
        done = await step(
            tx,
            call.services.outbox,
            call.principal,
            memory_id,
            kind,
            reason=reason,
            if_match=version,
            request_id=call.request_id,
        )
        return Answer(done, headers=etag(done.memory.version))

    return await call.write(work)


async def _against(tx: Transaction, memory_id: UUID) -> Memory:
    try:
        return await get_memory(tx, memory_id)
    except NotFoundError as error:
        faults = [FieldError("/against", error.detail)]
        raise InvalidInputError("the memory can't be disputed like that", errors=faults) from None


def _check_reason(shape: Dispute | Retraction) -> None:
    if faults := text_faults(shape, ("reason",), solid=("reason",)):
        raise InvalidInputError("the reason can't be kept", errors=faults)
