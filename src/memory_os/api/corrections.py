"""`/v1/corrections`: what is said to be wrong with memories, and the decision about it."""

from __future__ import annotations

from typing import Annotated, Any, get_args
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from memory_os.api.calls import IDEMPOTENCY_KEY, Answer, Call
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.checking import check_word, text_faults
from memory_os.corrections.applying import text_to_embed
from memory_os.corrections.checking import check_shape
from memory_os.corrections.deciding import apply_correction, reject_correction
from memory_os.corrections.model import (
    Application,
    AppliedCorrection,
    Correction,
    CorrectionDraft,
    Rejection,
    StoredCorrection,
)
from memory_os.corrections.proposing import propose_correction
from memory_os.corrections.reading import CorrectionFilter, get_correction, list_corrections
from memory_os.domain.corrections import CORRECTION_KINDS, CorrectionStatus
from memory_os.domain.shapes import Cursor
from memory_os.errors import InvalidInputError
from memory_os.memories.writing import Prepared
from memory_os.storage.pages import Page

Key = Annotated[str | None, IDEMPOTENCY_KEY]
_STATUSES = get_args(CorrectionStatus)


class CorrectionController(Controller):
    """Corrections of memories."""

    path = "/v1/corrections"
    tags = ["corrections"]  # noqa: RUF012 - Litestar reads it from the class

    @post("/", operation_id="proposeCorrection", opt={"permission": "read"}, summary="Propose a correction")
    async def propose(
        self, data: JSONBody[CorrectionDraft], call: Call, idempotency_key: Key = None
    ) -> Response[StoredCorrection]:
        """Say what is wrong with a memory, what is right instead, and why. A reviewer applies or rejects it."""
        call.act_for(data.user_id)
        longest = call.services.settings.max_text_chars
        check_shape(data, max_text_chars=longest)
        if data.retrieval_id is not None:
            await call.services.retriever.log.settle(data.retrieval_id)

        async def work(tx: Any) -> Answer[StoredCorrection]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            who, request_id = call.principal, call.request_id
            kept = await propose_correction(tx, who, data, max_text_chars=longest, request_id=request_id)
            return Answer(StoredCorrection(kept), 201)

        return await call.write(work)

    @get("/", operation_id="listCorrections", opt={"permission": "read"}, summary="List corrections, newest first")
    async def list_all(
        self,
        call: Call,
        status: Annotated[str | None, QueryParameter(schema_extra={"enum": list(_STATUSES)})] = None,
        kind: Annotated[str | None, QueryParameter(schema_extra={"enum": list(CORRECTION_KINDS)})] = None,
        memory: FromQuery[UUID | None] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Correction]:
        """List the corrections of memories that the caller sees."""
        check_word("/status", status, _STATUSES, noun="status")
        check_word("/kind", kind, CORRECTION_KINDS, noun="kind of correction")
        wanted = CorrectionFilter(status, memory, kind)
        return await call.read(lambda tx: list_corrections(tx, call.principal, wanted, cursor, limit))

    @get("/{correction_id:uuid}", operation_id="getCorrection", opt={"permission": "read"}, summary="Read a correction")
    async def get_one(self, correction_id: FromPath[UUID], call: Call) -> Correction:
        """Read one correction; 404 where its memory is not there for the caller."""
        return await call.read(lambda tx: get_correction(tx, call.principal, correction_id))

    @post(
        "/{correction_id:uuid}/apply",
        operation_id="applyCorrection",
        opt={"permission": "review"},
        status_code=200,
        summary="Apply a correction",
    )
    async def apply(
        self,
        correction_id: FromPath[UUID],
        call: Call,
        data: JSONBody[Application | None] = None,
        idempotency_key: Key = None,
    ) -> Response[AppliedCorrection]:
        """Let the right memory stand in the place of the wrong one, dispute it, or retract it; nothing is edited."""
        given = data or Application()
        _check_reason(given)
        if (known := await call.repeated()) is not None:
            return known
        service = call.services.memories
        text = await call.read(lambda tx: text_to_embed(tx, correction_id))
        prepared = Prepared(text, await service.embed([] if text is None else [text]))

        async def work(tx: Any) -> Answer[AppliedCorrection]:  # noqa: ANN401 - as above
            outbox, who = call.services.outbox, call.principal
            return Answer(await apply_correction(tx, outbox, who, correction_id, given, prepared, call.request_id))

        return await call.write(work)

    @post(
        "/{correction_id:uuid}/reject",
        operation_id="rejectCorrection",
        opt={"permission": "review"},
        status_code=200,
        summary="Reject a correction",
    )
    async def reject(
        self, correction_id: FromPath[UUID], data: JSONBody[Rejection], call: Call, idempotency_key: Key = None
    ) -> Response[StoredCorrection]:
        """Decide that the memory stays as it is, and say why."""
        _check_reason(data)

        async def work(tx: Any) -> Answer[StoredCorrection]:  # noqa: ANN401 - as above
            return Answer(
                StoredCorrection(await reject_correction(tx, call.principal, correction_id, data, call.request_id))
            )

        return await call.write(work)


def _check_reason(shape: Application | Rejection) -> None:
    if faults := text_faults(shape, ("reason",), solid=("reason",)):
        raise InvalidInputError("the reason can't be kept", errors=faults)
