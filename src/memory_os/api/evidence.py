"""`/v1/memories/{id}/evidence`: what speaks for a memory, and against it."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, delete, get, post
from litestar.params import FromPath, JSONBody

from memory_os.api.calls import IDEMPOTENCY_KEY, Answer, Call
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.domain.shapes import Cursor
from memory_os.memories.reading import get_memory
from memory_os.sources.evidence import add_evidence, list_evidence, withdraw_evidence
from memory_os.sources.evidence_model import Evidence, EvidenceAddition, StoredEvidence
from memory_os.storage.pages import Page


class EvidenceController(Controller):
    """Evidence of memories."""

    path = "/v1/memories/{memory_id:uuid}/evidence"
    tags = ["sources"]  # noqa: RUF012 - Litestar reads it from the class

    @get("/", operation_id="listEvidence", opt={"permission": "read"}, summary="List the evidence of a memory")
    async def list_all(
        self,
        memory_id: FromPath[UUID],
        call: Call,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Evidence]:
        """List evidence, newest first, what was withdrawn too. It shows to who may read memory and source."""
        return await call.read(lambda tx: list_evidence(tx, memory_id, cursor, limit))

    @post("/", operation_id="addEvidence", opt={"permission": "write"}, summary="Add evidence to a memory")
    async def add(
        self,
        memory_id: FromPath[UUID],
        data: JSONBody[EvidenceAddition],
        call: Call,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[StoredEvidence]:
        """Add evidence; what is there already is found and stays as it is.

        409 where some may read the memory who may not read the source, unless `widen` is true.
        """
        call.act_for(data.user_id)

        async def work(tx: Any) -> Answer[StoredEvidence]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            memory = await get_memory(tx, memory_id)
            found = await add_evidence(
                tx, call.principal, memory, [data.draft()], call.request_id, widen=data.widen, pointer=""
            )
            return Answer(StoredEvidence(found[0]), 201)

        return await call.write(work)

    @delete(
        "/{evidence_id:uuid}",
        operation_id="withdrawEvidence",
        opt={"permission": "write"},
        status_code=200,
        summary="Withdraw evidence",
    )
    async def withdraw(self, memory_id: FromPath[UUID], evidence_id: FromPath[UUID], call: Call) -> StoredEvidence:
        """Mark evidence as withdrawn; it stays readable, and the memory stays as it is."""
        found = await call.read(
            lambda tx: withdraw_evidence(tx, call.principal, memory_id, evidence_id, call.request_id)
        )
        return StoredEvidence(found)
