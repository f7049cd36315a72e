"""`/v1/sources`: store, list, read, change, delete sources; their passages, and the records that came from them."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, delete, get, patch, post
from litestar.params import FromPath, JSONBody, QueryParameter

from memory_os.api.calls import IDEMPOTENCY_KEY, IF_MATCH, ActiveCall, Answer, Call, etag, parse_if_match
from memory_os.api.parameters import CURSOR, LIMIT, KeyParameter, Limit
from memory_os.checking import check_word
from memory_os.domain.shapes import NO_NUL, Cursor
from memory_os.domain.sources import DELETION_POLICIES, SOURCE_KINDS, DeletionPolicy
from memory_os.sources.checking import check_kind
from memory_os.sources.deleting import delete_source
from memory_os.sources.model import (
    AddedPassages,
    ChangedSource,
    DeletedSource,
    Passage,
    PassageAddition,
    Source,
    SourceDraft,
    SourcePatch,
    SourceRecord,
    StoredSource,
)
from memory_os.sources.passages import add_passages
from memory_os.sources.reading import SourceFilter, get_source, list_passages, list_sources
from memory_os.sources.service import SourceService
from memory_os.sources.tracing import list_records
from memory_os.sources.writing import change_source, store_source
from memory_os.storage.pages import Page

CREATED, KNOWN = 201, 200
_URI = QueryParameter(min_length=1, max_length=2_000, pattern=NO_NUL, description="Compared literally.")
_POLICY = QueryParameter(
    max_length=64,
    schema_extra={"enum": list(DELETION_POLICIES)},
    description=" ".join(f"`{name}`: {meaning}" for name, meaning in DELETION_POLICIES.items()),
)


class SourceController(Controller):
    """Sources: documents, conversations, tasks, code changes and other things that memories are taken from."""

    path = "/v1/sources"
    tags = ["sources"]  # noqa: RUF012 - Litestar reads it from the class

    @post("/", operation_id="storeSource", opt={"permission": "write"}, summary="Store a source")
    async def store(
        self, data: JSONBody[SourceDraft], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[StoredSource]:
        """Store a source with its passages. 201 when it is new, 200 when the same id was stored so before."""
        call.act_for(data.user_id)
        service = _service(call)
        service.check(data, call.principal)
        if (known := await call.repeated()) is not None:
            return known
        embedded = await service.embed_passages(data.passages)

        async def work(tx: Any) -> Answer[StoredSource]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            stored, created = await store_source(tx, call.principal, data, embedded)
            return Answer(stored, CREATED if created else KNOWN, etag(stored.source.version))

        return await call.write(work)

    @get("/", operation_id="listSources", opt={"permission": "read"}, summary="List sources, newest first")
    async def list_all(
        self,
        call: Call,
        kind: Annotated[str | None, QueryParameter(schema_extra={"enum": list(SOURCE_KINDS)})] = None,
        uri: Annotated[str | None, _URI] = None,
        author: KeyParameter = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Source]:
        """List what the caller may see."""
        check_kind(kind)
        wanted = SourceFilter(kind, uri, author)
        return await call.read(lambda tx: list_sources(tx, wanted, cursor, limit))

    @get("/{source_id:uuid}", operation_id="getSource", opt={"permission": "read"}, summary="Read a source")
    async def get_one(self, source_id: FromPath[UUID], call: Call) -> Response[Source]:
        """Read one source; 404 alike for absent, invisible and other tenants' ones."""
        source = await call.read(lambda tx: get_source(tx, source_id))
        return Answer(source, headers=etag(source.version)).response()

    @patch("/{source_id:uuid}", operation_id="changeSource", opt={"permission": "write"}, summary="Change a source")
    async def change(
        self,
        source_id: FromPath[UUID],
        data: JSONBody[SourcePatch],
        call: Call,
        if_match: Annotated[str | None, IF_MATCH] = None,
    ) -> Response[ChangedSource]:
        """Change fields of a source. Passages and evidence follow its readers, memories keep theirs."""
        version = parse_if_match(if_match)
        source = await call.read(
            lambda tx: change_source(tx, call.principal, source_id, data, if_match=version, request_id=call.request_id)
        )
        return Answer(ChangedSource(source), headers=etag(source.version)).response()

    @delete(
        "/{source_id:uuid}",
        operation_id="deleteSource",
        opt={"permission": "write"},
        status_code=200,
        summary="Delete a source",
    )
    async def remove(
        self,
        source_id: FromPath[UUID],
        call: Call,
        policy: Annotated[str, _POLICY] = "keep",
        if_match: Annotated[str | None, IF_MATCH] = None,
    ) -> DeletedSource:
        """Delete a source with its passages and the links to it; the policy says what becomes of its memories."""
        check_word("/policy", policy, DELETION_POLICIES, noun="policy")
        chosen: DeletionPolicy = policy  # type: ignore[assignment]  # one of them by now
        version, outbox = parse_if_match(if_match), call.services.outbox
        return await call.read(
            lambda tx: delete_source(
                tx, outbox, call.principal, source_id, chosen, if_match=version, request_id=call.request_id
            )
        )

    @post(
        "/{source_id:uuid}/passages",
        operation_id="addPassages",
        opt={"permission": "write"},
        summary="Add passages to a source",
    )
    async def add(
        self,
        source_id: FromPath[UUID],
        data: JSONBody[PassageAddition],
        call: Call,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[AddedPassages]:
        """Append passages after those that are there. 200 when all of their ids were stored with the same texts."""
        call.act_for(data.user_id)
        service = _service(call)
        service.check_passages(data.passages)
        if (known := await call.repeated()) is not None:
            return known
        await call.read(lambda tx: get_source(tx, source_id))  # nobody pays for embedding what has no place
        embedded = await service.embed_passages(data.passages)

        async def work(tx: Any) -> Answer[AddedPassages]:  # noqa: ANN401 - as above
            places, created = await add_passages(tx, source_id, data.passages, embedded)
            return Answer(AddedPassages(places), CREATED if created else KNOWN)

        return await call.write(work)

    @get(
        "/{source_id:uuid}/passages",
        operation_id="listPassages",
        opt={"permission": "read"},
        summary="List the passages of a source in their order",
    )
    async def passages(
        self,
        source_id: FromPath[UUID],
        call: Call,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Passage]:
        """List passages as they stand in the source."""
        return await call.read(lambda tx: list_passages(tx, source_id, cursor, limit))

    @get(
        "/{source_id:uuid}/records",
        operation_id="listSourceRecords",
        opt={"permission": "read"},
        summary="List what came from a source",
    )
    async def records(
        self,
        source_id: FromPath[UUID],
        call: Call,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[SourceRecord]:
        """List memories with evidence from a source, those derived from them, and entities linked to it."""
        return await call.read(lambda tx: list_records(tx, source_id, cursor, limit))


def _service(call: ActiveCall) -> SourceService:
    memories = call.services.memories
    return SourceService(memories.embed, memories.max_text_chars)
