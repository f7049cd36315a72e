"""`/v1/memory/entities`: declare, list, read, change, delete entities; their links; what is known."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, delete, get, patch, post
from litestar.params import FromPath, JSONBody, QueryParameter

from memory_os.api.calls import IDEMPOTENCY_KEY, IF_MATCH, ActiveCall, Answer, Call, etag, parse_if_match
from memory_os.api.parameters import CURSOR, LIMIT, KeyParameter, Limit, MomentParameter, UserParameter
from memory_os.checking import check_word, parse_moment
from memory_os.domain.shapes import NO_NUL, Cursor
from memory_os.entities.checking import check_closing, check_link
from memory_os.entities.context import read_context
from memory_os.entities.links import LinkFilter, close_link, delete_link, list_links, store_link
from memory_os.entities.model import (
    ENTITY_STATUSES,
    LINK_LAYERS,
    ClosingLink,
    Entity,
    EntityContext,
    EntityDraft,
    EntityPatch,
    Link,
    LinkDraft,
    StoredEntity,
    StoredLink,
)
from memory_os.entities.reading import EntityFilter, get_entity, list_entities
from memory_os.entities.service import EntityService
from memory_os.entities.writing import delete_entity
from memory_os.memories.model import Deleted
from memory_os.storage.pages import Page

CREATED, KNOWN = 201, 200
_NAME = QueryParameter(
    min_length=1, max_length=200, pattern=NO_NUL, description="A name or alias, in any spelling of it."
)


class EntityController(Controller):
    """Entities: declared people, organisations, projects and other things."""

    path = "/v1/memory/entities"
    tags = ["entities"]  # noqa: RUF012 - Litestar reads it from the class

    @post("/", operation_id="declareEntity", opt={"permission": "write"}, summary="Declare an entity")
    async def declare(
        self, data: JSONBody[EntityDraft], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[StoredEntity]:
        """Declare an entity. 201 when it is new, 200 when the same id was stored with the same name and type before."""
        call.act_for(data.user_id)
        service = entity_service(call)
        service.check(data, call.principal)
        if (known := await call.repeated()) is not None:
            return known
        embedded = await service.embed_draft(data)

        async def work(tx: Any) -> Answer[StoredEntity]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            stored, created = await service.store(tx, call.principal, data, embedded, call.request_id)
            return Answer(stored, CREATED if created else KNOWN, etag(stored.entity.version))

        return await call.write(work)

    @get("/", operation_id="listEntities", opt={"permission": "read"}, summary="List entities, newest first")
    async def list_all(
        self,
        call: Call,
        entity_type: KeyParameter = None,
        name: Annotated[str | None, _NAME] = None,
        status: Annotated[str | None, QueryParameter(schema_extra={"enum": list(ENTITY_STATUSES)})] = None,
        user_id: UserParameter = None,
        declared: Annotated[bool, QueryParameter(description="false lists what was only ever mentioned.")] = True,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Entity]:
        """List what the caller may see."""
        check_word("/status", status, ENTITY_STATUSES, noun="status of entities")
        wanted = EntityFilter(entity_type, name, status, user_id, declared)
        return await call.read(lambda tx: list_entities(tx, wanted, cursor, limit))

    @get("/{entity_id:uuid}", operation_id="getEntity", opt={"permission": "read"}, summary="Read an entity")
    async def get_one(self, entity_id: FromPath[UUID], call: Call) -> Response[Entity]:
        """Read one entity; 404 alike for absent, invisible and other tenants' ones."""
        entity = await call.read(lambda tx: get_entity(tx, entity_id))
        return Answer(entity, headers=etag(entity.version)).response()

    @patch("/{entity_id:uuid}", operation_id="changeEntity", opt={"permission": "write"}, summary="Change an entity")
    async def change(
        self,
        entity_id: FromPath[UUID],
        data: JSONBody[EntityPatch],
        call: Call,
        if_match: Annotated[str | None, IF_MATCH] = None,
    ) -> Response[StoredEntity]:
        """Change fields of an entity; what was there before goes to the audit log."""
        version = parse_if_match(if_match)
        changed = await entity_service(call).change(call.principal, entity_id, data, version, call.request_id)
        return Answer(changed, headers=etag(changed.entity.version)).response()

    @delete(
        "/{entity_id:uuid}",
        operation_id="deleteEntity",
        opt={"permission": "write"},
        status_code=200,
        summary="Delete an entity",
    )
    async def remove(
        self, entity_id: FromPath[UUID], call: Call, if_match: Annotated[str | None, IF_MATCH] = None
    ) -> Deleted:
        """Delete an entity with its links and edges; memories that name it stay."""
        version, outbox = parse_if_match(if_match), call.services.outbox
        return await call.read(
            lambda tx: delete_entity(
                tx, outbox, call.principal, entity_id, if_match=version, request_id=call.request_id
            )
        )

    @get(
        "/{entity_id:uuid}/context",
        operation_id="getEntityContext",
        opt={"permission": "read"},
        summary="What is known about an entity",
    )
    async def context(self, entity_id: FromPath[UUID], call: Call, as_of: MomentParameter = None) -> EntityContext:
        """What holds of an entity now, or at `as_of`: links, typed edges and memories, each group bounded."""
        moment = parse_moment("as_of", as_of)
        return await call.read(lambda tx: read_context(tx, entity_id, moment))

    @post(
        "/{entity_id:uuid}/links",
        operation_id="linkEntity",
        opt={"permission": "write"},
        summary="Link an entity to a record",
    )
    async def link(
        self,
        entity_id: FromPath[UUID],
        data: JSONBody[LinkDraft],
        call: Call,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[StoredLink]:
        """Declare a link. 201 when it is new, 200 when the same id was stored with the same ends and relationship."""
        call.act_for(data.user_id)
        check_link(data)

        async def work(tx: Any) -> Answer[StoredLink]:  # noqa: ANN401 - as above
            outbox = call.services.outbox
            stored, created = await store_link(tx, outbox, call.principal, entity_id, data, call.request_id)
            return Answer(stored, CREATED if created else KNOWN, etag(stored.link.version))

        return await call.write(work)

    @get(
        "/{entity_id:uuid}/links",
        operation_id="listLinks",
        opt={"permission": "read"},
        summary="List the links of an entity, newest first",
    )
    async def links(
        self,
        entity_id: FromPath[UUID],
        call: Call,
        valid_at: MomentParameter = None,
        relationship: KeyParameter = None,
        layer: Annotated[str | None, QueryParameter(schema_extra={"enum": list(LINK_LAYERS)})] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Link]:
        """List links; `valid_at` keeps those in force at a moment, the end of a window being outside of it."""
        check_word("/layer", layer, LINK_LAYERS, noun="layer that a link can lead to")
        wanted = LinkFilter(parse_moment("valid_at", valid_at), relationship, layer)
        return await call.read(lambda tx: list_links(tx, entity_id, wanted, cursor, limit))

    @post(
        "/{entity_id:uuid}/links/{link_id:uuid}/close",
        operation_id="closeLink",
        opt={"permission": "write"},
        status_code=200,
        summary="End a link",
    )
    async def close(
        self,
        entity_id: FromPath[UUID],
        link_id: FromPath[UUID],
        call: Call,
        data: JSONBody[ClosingLink | None] = None,
        idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None,
    ) -> Response[StoredLink]:
        """End a link at `valid_to`, by default now. It stays readable, and was valid until then."""
        closing = data or ClosingLink()
        call.act_for(closing.user_id)
        check_closing(closing)

        async def work(tx: Any) -> Answer[StoredLink]:  # noqa: ANN401 - as above
            outbox, end = call.services.outbox, closing.valid_to
            closed = await close_link(tx, outbox, call.principal, entity_id, link_id, end, call.request_id)
            return Answer(closed, headers=etag(closed.link.version))

        return await call.write(work)

    @delete(
        "/{entity_id:uuid}/links/{link_id:uuid}",
        operation_id="deleteLink",
        opt={"permission": "write"},
        status_code=200,
        summary="Delete a link",
    )
    async def unlink(
        self,
        entity_id: FromPath[UUID],
        link_id: FromPath[UUID],
        call: Call,
        if_match: Annotated[str | None, IF_MATCH] = None,
    ) -> Deleted:
        """Delete a link, as if it had never been declared."""
        version, outbox = parse_if_match(if_match), call.services.outbox
        return await call.read(
            lambda tx: delete_link(
                tx, outbox, call.principal, entity_id, link_id, if_match=version, request_id=call.request_id
            )
        )


def entity_service(call: ActiveCall) -> EntityService:
    """What a call asks of entities."""
    services = call.services
    return EntityService(services.database, services.memories.embed, services.outbox)
