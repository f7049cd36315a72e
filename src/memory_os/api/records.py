"""`/v1/memory/observations`, `/procedures`, `/outcomes`: three kinds of record with one shape and the same calls."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Generic, TypeVar
from uuid import UUID

from litestar import Controller, Response, Router, delete, get, patch, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.types import Method, OperationIDCreator
from litestar.types.internal_types import PathParameterDefinition

from memory_os.api.calls import IDEMPOTENCY_KEY, IF_MATCH, Answer, Call, etag, parse_if_match
from memory_os.api.parameters import CURSOR, LIMIT, Limit, UserParameter
from memory_os.domain.shapes import Cursor
from memory_os.memories.model import Deleted
from memory_os.records.checking import check_draft, check_status
from memory_os.records.model import (
    RECORD_STATUSES,
    Record,
    RecordDraft,
    RecordLayer,
    RecordPatch,
    StoredObservation,
    StoredOutcome,
    StoredProcedure,
)
from memory_os.records.reading import RecordFilter, get_record, list_records
from memory_os.records.writing import change_record, delete_record, store_record
from memory_os.storage.pages import Page

CREATED, KNOWN = 201, 200
S = TypeVar("S", StoredObservation, StoredProcedure, StoredOutcome)


def _operation(verb: str, *, many: bool = False) -> OperationIDCreator:
    """Names an operation after its kind: `storeObservation`, `listProcedures`."""

    def create(_: HTTPRouteHandler, __: Method, path: list[str | PathParameterDefinition]) -> str:
        kind = next(part for part in path if part in {"observations", "procedures", "outcomes"})
        return verb + (str(kind) if many else str(kind).removesuffix("s")).capitalize()

    return create


class _RecordController(Controller, Generic[S]):
    """The calls of one kind of record."""

    layer: ClassVar[RecordLayer]
    answer: type[S]

    def __init__(self, owner: Router) -> None:
        super().__init__(owner)
        self.signature_namespace[S] = self.answer  # type: ignore[misc]  # Litestar resolves a generic's answers by this

    @post("/", operation_id=_operation("store"), opt={"permission": "write"}, summary="Store one")
    async def store(
        self, data: JSONBody[RecordDraft], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[S]:
        """Store a record. 201 when it is new, 200 when the same id was stored with the same title and summary."""
        call.act_for(data.user_id)
        check_draft(data, call.principal)

        async def work(tx: Any) -> Answer[S]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            stored, created = await store_record(tx, call.principal, self.layer, data)
            return Answer(self.answer(stored), CREATED if created else KNOWN, etag(stored.version))

        return await call.write(work)

    @get(
        "/",
        operation_id=_operation("list", many=True),
        opt={"permission": "read"},
        summary="List records, newest first",
    )
    async def list_all(
        self,
        call: Call,
        status: Annotated[str | None, QueryParameter(schema_extra={"enum": list(RECORD_STATUSES)})] = None,
        user_id: UserParameter = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Record]:
        """List what the caller may see."""
        check_status(status)
        return await call.read(lambda tx: list_records(tx, self.layer, RecordFilter(status, user_id), cursor, limit))

    @get("/{record_id:uuid}", operation_id=_operation("get"), opt={"permission": "read"}, summary="Read one")
    async def get_one(self, record_id: FromPath[UUID], call: Call) -> Response[Record]:
        """Read one record; 404 alike for absent, invisible and other tenants' ones."""
        found = await call.read(lambda tx: get_record(tx, self.layer, record_id))
        return Answer(found, headers=etag(found.version)).response()

    @patch(
        "/{record_id:uuid}", operation_id=_operation("change"), opt={"permission": "write"}, summary="Change a record"
    )
    async def change(
        self,
        record_id: FromPath[UUID],
        data: JSONBody[RecordPatch],
        call: Call,
        if_match: Annotated[str | None, IF_MATCH] = None,
    ) -> Response[S]:
        """Change fields of a record; what was there before goes to the audit log."""
        version = parse_if_match(if_match)
        changed = await call.read(
            lambda tx: change_record(
                tx, call.principal, self.layer, record_id, data, if_match=version, request_id=call.request_id
            )
        )
        return Answer(self.answer(changed), headers=etag(changed.version)).response()

    @delete(
        "/{record_id:uuid}",
        operation_id=_operation("delete"),
        opt={"permission": "write"},
        status_code=200,
        summary="Delete one",
    )
    async def remove(
        self, record_id: FromPath[UUID], call: Call, if_match: Annotated[str | None, IF_MATCH] = None
    ) -> Deleted:
        """Delete a record with the links to it."""
        version, outbox = parse_if_match(if_match), call.services.outbox
        return await call.read(
            lambda tx: delete_record(
                tx, outbox, call.principal, self.layer, record_id, if_match=version, request_id=call.request_id
            )
        )


class ObservationController(_RecordController[StoredObservation]):
    """Observations: what was noticed."""

    path = "/v1/memory/observations"
    tags = ["observations"]  # noqa: RUF012 - Litestar reads it from the class
    layer = "observation"
    answer = StoredObservation


class ProcedureController(_RecordController[StoredProcedure]):
    """Procedures: how something is done."""

    path = "/v1/memory/procedures"
    tags = ["procedures"]  # noqa: RUF012 - as above
    layer = "procedure"
    answer = StoredProcedure


class OutcomeController(_RecordController[StoredOutcome]):
    """Outcomes: what came of something."""

    path = "/v1/memory/outcomes"
    tags = ["outcomes"]  # noqa: RUF012 - as above
    layer = "outcome"
    answer = StoredOutcome


RECORD_CONTROLLERS = (ObservationController, ProcedureController, OutcomeController)
