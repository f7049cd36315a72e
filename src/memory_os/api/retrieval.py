"""`/v1/retrieve`, `/v1/context`, `/v1/retrievals`: asking memory, and explaining its answers."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.params import FromPath, JSONBody

from memory_os.api.calls import IDEMPOTENCY_KEY, ActiveCall, Answer, Call
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.domain.shapes import Cursor
from memory_os.retrieval.feedback import give_feedback
from memory_os.retrieval.log import explain_retrieval, list_retrievals
from memory_os.retrieval.model import (
    ContextPack,
    ContextRequest,
    Feedback,
    RetrievalExplanation,
    RetrievalRequest,
    RetrievalSummary,
    StoredFeedback,
)
from memory_os.storage.pages import Page


class RetrievalController(Controller):
    """Retrieval: from a question to a context pack, and the log of it."""

    path = "/v1"
    tags = ["retrieval"]  # noqa: RUF012 - Litestar reads it from the class

    @post("/retrieve", operation_id="retrieve", opt={"permission": "read"}, status_code=200, summary="Ask memory")
    async def retrieve(
        self,
        data: JSONBody[RetrievalRequest],
        call: Call,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[ContextPack]:
        """Find what bears on a question: permitted, current, labelled, and small enough for the budget."""
        return await _answer(data, call, keyed=idempotency_key is not None)

    @post(
        "/context",
        operation_id="retrieveContext",
        opt={"permission": "read"},
        status_code=200,
        summary="Ask memory, for a prompt",
    )
    async def context(
        self, data: JSONBody[ContextRequest], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[ContextPack]:
        """Like `/v1/retrieve`, with the pack rendered as Markdown, stored text fenced as data."""
        return await _answer(data, call, keyed=idempotency_key is not None)

    @get(
        "/retrievals",
        operation_id="listRetrievals",
        opt={"permission": "read"},
        summary="List retrievals, newest first",
    )
    async def list_all(
        self,
        call: Call,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[RetrievalSummary]:
        """List one's own retrievals; operators and admins see those of the whole tenant."""
        return await call.read(lambda tx: list_retrievals(tx, call.principal, cursor, limit))

    @get(
        "/retrievals/{retrieval_id:uuid}",
        operation_id="explainRetrieval",
        opt={"permission": "read"},
        summary="Explain a past answer",
    )
    async def explain(self, retrieval_id: FromPath[UUID], call: Call) -> RetrievalExplanation:
        """What was found by which arm, with which score and path, and what became of it; records as they are now."""
        await call.services.retriever.log.settle(retrieval_id)
        return await call.read(lambda tx: explain_retrieval(tx, call.principal, retrieval_id))

    @post(
        "/retrievals/{retrieval_id:uuid}/feedback",
        operation_id="giveFeedback",
        opt={"permission": "read"},
        status_code=200,
        summary="Say what an answer was good for",
    )
    async def give_feedback(
        self,
        retrieval_id: FromPath[UUID],
        data: JSONBody[Feedback],
        call: Call,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[StoredFeedback]:
        """Say which records of a pack were used, irrelevant or wrong; what was used reinforces the edges to it."""
        await call.services.retriever.log.settle(retrieval_id)

        async def work(tx: Any) -> Answer[StoredFeedback]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            return Answer(await give_feedback(tx, call.principal, retrieval_id, data))

        return await call.write(work)


async def _answer(data: RetrievalRequest, call: ActiveCall, *, keyed: bool) -> Response[ContextPack]:
    call.act_for(data.user_id)
    retriever = call.services.retriever
    if (known := await call.repeated()) is not None:
        return known
    # No unit of work is open meanwhile: embedder and graph are asked. Only the answer to a key is kept, in a small one.
    retrieved = await retriever.retrieve(call.principal, data, call.request_id)
    answer = Answer(retrieved.pack)
    if not keyed:
        retriever.log.keep(retrieved.entry)
        return answer.response()
    used = False

    async def work(_: Any) -> Answer[ContextPack]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
        nonlocal used
        used = True
        return answer

    response = await call.write(work)
    if used:  # otherwise the same key was answered by somebody else meanwhile, and this pack was never given out
        retriever.log.keep(retrieved.entry)
    return response
