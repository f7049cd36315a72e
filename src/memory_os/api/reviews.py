"""`/v1/reviews`: pairs of memories that the gate could not decide about by itself."""

from __future__ import annotations

from typing import Annotated, get_args
from uuid import UUID

from litestar import Controller, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from memory_os.api.calls import Call
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.checking import check_word
from memory_os.domain.shapes import Cursor
from memory_os.memories.deciding import DecidedReview, ReviewDecision, decide_review
from memory_os.memories.reviewing import (
    Review,
    ReviewFilter,
    ReviewKind,
    ReviewStatus,
    get_review,
    list_reviews,
)
from memory_os.storage.pages import Page


class ReviewController(Controller):
    """What awaits a decision: possible duplicates, supersession candidates, contradictions."""

    path = "/v1/reviews"
    tags = ["reviews"]  # noqa: RUF012 - Litestar reads it from the class

    @get("/", operation_id="listReviews", opt={"permission": "read"}, summary="List pairs to decide, newest first")
    async def list_all(
        self,
        call: Call,
        status: Annotated[str | None, QueryParameter(schema_extra={"enum": list(get_args(ReviewStatus))})] = None,
        kind: Annotated[str | None, QueryParameter(schema_extra={"enum": list(get_args(ReviewKind))})] = None,
        memory: FromQuery[UUID | None] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Review]:
        """List pairs of which the caller sees both memories."""
        check_word("/status", status, get_args(ReviewStatus), noun="status")
        check_word("/kind", kind, get_args(ReviewKind), noun="kind")
        return await call.read(lambda tx: list_reviews(tx, ReviewFilter(status, kind, memory), cursor, limit))

    @get("/{review_id:uuid}", operation_id="getReview", opt={"permission": "read"}, summary="Read a pair to decide")
    async def get_one(self, review_id: FromPath[UUID], call: Call) -> Review:
        """Read one pair with both memories and what the guard found."""
        return await call.read(lambda tx: get_review(tx, review_id))

    @post(
        "/{review_id:uuid}/decide",
        operation_id="decideReview",
        opt={"permission": "review"},
        status_code=200,
        summary="Decide about a pair",
    )
    async def decide(self, review_id: FromPath[UUID], data: JSONBody[ReviewDecision], call: Call) -> DecidedReview:
        """Merge the newer into the older, let it supersede the older, mark both as disputed, or keep both."""
        outbox = call.services.outbox
        return await call.read(lambda tx: decide_review(tx, outbox, call.principal, review_id, data, call.request_id))
