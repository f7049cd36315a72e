"""`/v1/edges`: claim, list, read and withdraw typed edges."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from memory_os.api.calls import IDEMPOTENCY_KEY, IF_MATCH, Answer, Call, etag, parse_if_match
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.shapes import Cursor
from memory_os.edges.checking import check_draft, check_type
from memory_os.edges.model import Edge, EdgeDraft, StoredEdge
from memory_os.edges.reading import EdgeFilter, get_edge, list_edges
from memory_os.edges.writing import delete_edge, store_edge
from memory_os.memories.model import Deleted
from memory_os.storage.pages import Page

CREATED, KNOWN = 201, 200


class EdgeController(Controller):
    """Edges: typed, directed claims between two memories, or a memory and an entity."""

    path = "/v1/edges"
    tags = ["edges"]  # noqa: RUF012 - Litestar reads it from the class

    @post("/", operation_id="storeEdge", opt={"permission": "write"}, summary="Store an edge")
    async def store(
        self, data: JSONBody[EdgeDraft], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[StoredEdge]:
        """Store an edge. 201 when it is new, 200 when the same claim stands already."""
        call.act_for(data.user_id)
        check_draft(data)

        async def work(tx: Any) -> Answer[StoredEdge]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            stored, created = await store_edge(tx, call.services.outbox, call.principal, data, call.request_id)
            return Answer(stored, CREATED if created else KNOWN, etag(stored.edge.version))

        return await call.write(work)

    @get("/", operation_id="listEdges", opt={"permission": "read"}, summary="List edges, newest first")
    async def list_all(
        self,
        call: Call,
        memory: FromQuery[UUID | None] = None,
        entity: FromQuery[UUID | None] = None,
        type: Annotated[str | None, QueryParameter(schema_extra={"enum": list(EDGE_TYPES)})] = None,  # noqa: A002 - the parameter's name
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Edge]:
        """List edges of which the caller may see both ends; `memory` and `entity` match either end."""
        check_type(type)
        return await call.read(lambda tx: list_edges(tx, EdgeFilter(memory, entity, type), cursor, limit))

    @get("/{edge_id:uuid}", operation_id="getEdge", opt={"permission": "read"}, summary="Read an edge")
    async def get_one(self, edge_id: FromPath[UUID], call: Call) -> Response[Edge]:
        """Read one edge; 404 alike for absent ones and those with an end that the caller may not see."""
        edge = await call.read(lambda tx: get_edge(tx, edge_id))
        return Answer(edge, headers=etag(edge.version)).response()

    @delete(
        "/{edge_id:uuid}",
        operation_id="deleteEdge",
        opt={"permission": "write"},
        status_code=200,
        summary="Delete an edge",
    )
    async def remove(
        self, edge_id: FromPath[UUID], call: Call, if_match: Annotated[str | None, IF_MATCH] = None
    ) -> Deleted:
        """Delete an edge; both of its ends stay."""
        version, outbox = parse_if_match(if_match), call.services.outbox
        return await call.read(
            lambda tx: delete_edge(tx, outbox, call.principal, edge_id, if_match=version, request_id=call.request_id)
        )
