"""`/v1/memories`: store one or many, list, read, change, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, delete, get, patch, post
from litestar.datastructures import ResponseHeader
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, Reference, RequestBody, Schema
from litestar.params import FromPath, JSONBody, QueryParameter

from memory_os.api.bodies import BODY_TYPES, JSON, LINES
from memory_os.api.calls import IDEMPOTENCY_KEY, IF_MATCH, Answer, Call, etag, parse_if_match
from memory_os.api.parameters import CURSOR, LIMIT, KeyParameter, Limit, MomentParameter, UserParameter
from memory_os.api.problems import field_error, summary_of
from memory_os.checking import check_word, parse_moment
from memory_os.domain.labels import LABELS, STATUSES
from memory_os.domain.shapes import Cursor
from memory_os.errors import FieldError, InvalidInputError, MemoryOSError, PayloadTooLargeError
from memory_os.memories.model import (
    BatchAnswer,
    BatchResult,
    ChangedMemory,
    Check,
    Deleted,
    Memory,
    MemoryDraft,
    MemoryPatch,
    Outcome,
    StoredMemory,
)
from memory_os.memories.reading import MemoryFilter, get_memory, list_memories
from memory_os.memories.service import MemoryService
from memory_os.storage.pages import Page

CREATED, MERGED = 201, 200


def _status(outcome: Outcome) -> int:
    return MERGED if outcome == "merged" else CREATED


@dataclass
class BatchOperation(Operation):
    """Shows in the document what the body of a batch is, which its handler reads by itself."""

    def __post_init__(self) -> None:
        items = Schema(type=OpenAPIType.ARRAY, items=Reference(ref="#/components/schemas/MemoryDraft"))
        whole = Schema(type=OpenAPIType.OBJECT, properties={"items": items}, required=["items"])
        lines = Schema(type=OpenAPIType.STRING, description="One memory a line.")
        content = {kind: OpenAPIMediaType(schema=Schema(one_of=[whole, items])) for kind in JSON}
        self.request_body = RequestBody(content={**content, LINES[0]: OpenAPIMediaType(schema=lines)}, required=True)


class MemoryController(Controller):
    """Memories: single knowledge items."""

    path = "/v1/memories"
    tags = ["memories"]  # noqa: RUF012 - Litestar reads it from the class

    @post("/", operation_id="storeMemory", opt={"permission": "write"}, summary="Store a memory")
    async def store(
        self, data: JSONBody[MemoryDraft], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[StoredMemory]:
        """Store a memory: 201 when it is stored as its own, 200 when it merged with one that says the same.

        `outcome` tells what became of it: `created`; `merged` into `duplicate_of`; `review`, stored and queued beside
        `candidates` that may say the same or have an older value; `superseded`, where it took or gave up a place; or
        `disputed`, stored with the memory that it contradicts. `rule` names what decided.
        """
        call.act_for(data.user_id)
        service = call.services.memories
        service.check(data, call.principal)
        if (known := await call.repeated()) is not None:
            return known
        embedded = await service.embed_drafts([data])

        async def work(tx: Any) -> Answer[StoredMemory]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            stored = await service.store(tx, call.principal, data, embedded, call.request_id)
            return Answer(stored, _status(stored.outcome), etag(stored.memory.version))

        return await call.write(work)

    @post(
        "/check",
        operation_id="checkMemory",
        opt={"permission": "read"},
        status_code=200,
        summary="Ask what the gate would do with a memory",
    )
    async def check(self, data: JSONBody[MemoryDraft], call: Call) -> Check:
        """Hold a memory against what is there, as storing it would. Nothing is stored."""
        call.act_for(data.user_id)
        service = call.services.memories
        service.check(data, call.principal)
        embedded = await service.embed_drafts([data])
        return await call.read(lambda tx: service.ask_gate(tx, call.principal, data, embedded))

    @post(
        "/batch",
        operation_id="storeMemories",
        opt={"permission": "write", BODY_TYPES: (*JSON, *LINES)},
        status_code=200,
        summary="Store many memories, each with an outcome of its own",
        operation_class=BatchOperation,
    )
    async def store_batch(
        self,
        request: Request[Any, Any, Any],
        call: Call,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[BatchAnswer]:
        """Store a batch: `{"items": [...]}`, a bare array, or NDJSON (`application/x-ndjson`), one memory a line."""
        service = call.services.memories
        items = _raw_items(await request.body(), request.headers.get("content-type", ""))
        if len(items) > call.services.settings.max_batch_items:
            raise PayloadTooLargeError(f"a batch holds at most {call.services.settings.max_batch_items} items")
        drafts = [_draft_of(item, service, call) for item in items]
        if (known := await call.repeated()) is not None:
            return known
        good = [draft for draft in drafts if isinstance(draft, MemoryDraft)]
        embedded = await service.embed_drafts(good)

        async def work(tx: Any) -> Answer[BatchAnswer]:  # noqa: ANN401 - as above
            outcomes, position = await service.store_batch(tx, call.principal, good, embedded, call.request_id)
            remaining = iter(outcomes)
            results = [
                _result(index, next(remaining) if isinstance(draft, MemoryDraft) else draft)
                for index, draft in enumerate(drafts)
            ]
            return Answer(BatchAnswer(results, position))

        return await call.write(work)

    @get("/", operation_id="listMemories", opt={"permission": "read"}, summary="List memories, newest first")
    async def list_all(
        self,
        call: Call,
        label: Annotated[str | None, QueryParameter(schema_extra={"enum": list(LABELS)})] = None,
        status: Annotated[str | None, QueryParameter(schema_extra={"enum": list(STATUSES)})] = None,
        user_id: UserParameter = None,
        tag: KeyParameter = None,
        conversation_id: KeyParameter = None,
        subject: KeyParameter = None,
        created_after: MomentParameter = None,
        created_before: MomentParameter = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Memory]:
        """List what the caller may see."""
        check_word("/label", label, LABELS, noun="label")
        check_word("/status", status, STATUSES, noun="status")
        after, before = parse_moment("created_after", created_after), parse_moment("created_before", created_before)
        wanted = MemoryFilter(label, status, user_id, tag, conversation_id, subject, after, before)
        return await call.read(lambda tx: list_memories(tx, wanted, cursor, limit))

    @get(
        "/{memory_id:uuid}",
        operation_id="getMemory",
        opt={"permission": "read"},
        summary="Read a memory",
        response_headers=[ResponseHeader(name="ETag", documentation_only=True, description="The version, quoted.")],
    )
    async def get_one(self, memory_id: FromPath[UUID], call: Call) -> Response[Memory]:
        """Read one memory; 404 alike for absent, invisible and other tenants' ones."""
        memory = await call.read(lambda tx: get_memory(tx, memory_id))
        return Answer(memory, headers=etag(memory.version)).response()

    @patch("/{memory_id:uuid}", operation_id="changeMemory", opt={"permission": "write"}, summary="Change a memory")
    async def change(
        self,
        memory_id: FromPath[UUID],
        data: JSONBody[MemoryPatch],
        call: Call,
        if_match: Annotated[str | None, IF_MATCH] = None,
    ) -> Response[ChangedMemory]:
        """Change fields of a memory; what was there before goes to the audit log."""
        service = call.services.memories
        version = parse_if_match(if_match)
        current = await call.read(lambda tx: get_memory(tx, memory_id))  # nobody pays for embedding what is not there
        prepared = await service.embed_patch(data, current)
        changed = await call.read(
            lambda tx: service.change(tx, call.principal, memory_id, data, prepared, version, call.request_id)
        )
        return Answer(changed, headers=etag(changed.memory.version)).response()

    @delete(
        "/{memory_id:uuid}",
        operation_id="deleteMemory",
        opt={"permission": "write"},
        status_code=200,
        summary="Delete a memory",
    )
    async def remove(
        self, memory_id: FromPath[UUID], call: Call, if_match: Annotated[str | None, IF_MATCH] = None
    ) -> Deleted:
        """Delete a memory with its vector, mentions, edges and links."""
        service, version = call.services.memories, parse_if_match(if_match)
        return await call.read(lambda tx: service.delete(tx, call.principal, memory_id, version, call.request_id))


def _raw_items(body: bytes, content_type: str) -> list[msgspec.Raw]:
    """The items of a batch, each still encoded, so that one malformed item fails alone."""
    try:
        if "ndjson" in content_type or "jsonl" in content_type:
            return [msgspec.Raw(line) for line in body.splitlines() if line.strip()]
        if body.lstrip()[:1] == b"[":
            return msgspec.json.decode(body, type=list[msgspec.Raw])
        return msgspec.json.decode(body, type=_Batch).items
    except RecursionError:
        raise InvalidInputError("the batch is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        faults = [field_error(str(error))]
        raise InvalidInputError("the batch is no JSON of the form {items: [...]}", errors=faults) from None


class _Batch(msgspec.Struct, forbid_unknown_fields=True):
    items: list[msgspec.Raw]


_decode_draft = msgspec.json.Decoder(MemoryDraft).decode


def _draft_of(item: msgspec.Raw, service: MemoryService, call: Call) -> MemoryDraft | MemoryOSError:
    try:
        draft = _decode_draft(item)
        if draft.user_id is not None and draft.user_id != call.principal.user_id:
            raise InvalidInputError(
                "a batch is written by one user: name it in X-Memory-User",
                errors=[FieldError("/user_id", "differs from the acting user")],
            )
        service.check(draft, call.principal)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return InvalidInputError("the item is not a memory", errors=[field_error(str(error))])
    except RecursionError:
        return InvalidInputError("the item is nested too deeply")
    except MemoryOSError as error:
        return error
    return draft


def _result(index: int, outcome: StoredMemory | MemoryOSError) -> BatchResult:
    if isinstance(outcome, MemoryOSError):
        return BatchResult(index, outcome.status, error=summary_of(outcome))
    return BatchResult(
        index,
        _status(outcome.outcome),
        memory_id=outcome.memory.id,
        outcome=outcome.outcome,
        similarity=outcome.similarity,
        rule=outcome.rule,
    )
