"""`/v1/memory/entities/merge`, `/split` and the acts that these leave: what they would do, do, and undo."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.params import FromPath, JSONBody

from memory_os.api.calls import IDEMPOTENCY_KEY, IF_MATCH, Answer, Call, etag, parse_if_match
from memory_os.api.entities import CREATED, KNOWN, entity_service
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.domain.shapes import Cursor
from memory_os.entities.act_model import EntityAct, MergedEntity, MergePlan, SplitPlan, StoredSplit, UndoneAct
from memory_os.entities.acts import list_acts
from memory_os.entities.checking import check_merge, check_split
from memory_os.entities.merging import merge_entities, plan_merge
from memory_os.entities.model import EntityMerge, EntitySplit
from memory_os.entities.splitting import plan_split, split_entity
from memory_os.entities.undoing import undo_act
from memory_os.storage.pages import Page

Key = Annotated[str | None, IDEMPOTENCY_KEY]
Version = Annotated[str | None, IF_MATCH]
Merged = MergedEntity | MergePlan
Split = StoredSplit | SplitPlan


class EntityMergingController(Controller):
    """Merging and splitting entities."""

    path = "/v1/memory/entities"
    tags = ["entities"]  # noqa: RUF012 - Litestar reads it from the class

    @post(
        "/merge",
        operation_id="mergeEntities",
        opt={"permission": "write"},
        status_code=200,
        summary="Merge an entity into another",
    )
    async def merge(
        self,
        data: JSONBody[EntityMerge],
        call: Call,
        if_match: Version = None,
        idempotency_key: Key = None,
    ) -> Response[Merged]:
        """Make `from` part of `into`, which gets its names, links and edges; `If-Match` is the version of `into`.

        Edges and links that would say the same twice become one. Nobody may read `into` who may not read `from`.
        With `dry_run` the answer is the plan.
        """
        call.act_for(data.user_id)
        check_merge(data)
        version = parse_if_match(if_match)
        if data.dry_run:
            plan: Answer[Merged] = Answer(await call.read(lambda tx: plan_merge(tx, data, version)))
            return plan.response()
        if (known := await call.repeated()) is not None:
            return known
        service, outbox = entity_service(call), call.services.outbox

        async def once() -> Response[Merged]:
            vectors = await service.embed_merge(call.principal, data)

            async def work(tx: Any) -> Answer[Merged]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
                merged = await merge_entities(
                    tx, outbox, call.principal, data, vectors, if_match=version, request_id=call.request_id
                )
                return Answer(merged, headers=etag(merged.entity.version))

            return await call.write(work)

        return await service.race(once)

    @post("/split", operation_id="splitEntity", opt={"permission": "write"}, summary="Split an entity")
    async def split(
        self,
        data: JSONBody[EntitySplit],
        call: Call,
        if_match: Version = None,
        idempotency_key: Key = None,
    ) -> Response[Split]:
        """Declare a new entity by aliases of another, which loses them; `If-Match` is the version of that other.

        Links and edges stay with the old one. 200 when the same id was split off with the same names before, and for
        the plan that `dry_run` asks for.
        """
        call.act_for(data.user_id)
        check_split(data)
        version = parse_if_match(if_match)
        if data.dry_run:
            plan: Answer[Split] = Answer(await call.read(lambda tx: plan_split(tx, data, version)), KNOWN)
            return plan.response()
        if (known := await call.repeated()) is not None:
            return known
        service, outbox = entity_service(call), call.services.outbox

        async def once() -> Response[Split]:
            vectors = await service.embed_split(call.principal, data)

            async def work(tx: Any) -> Answer[Split]:  # noqa: ANN401 - as above
                done, created = await split_entity(
                    tx, outbox, call.principal, data, vectors, if_match=version, request_id=call.request_id
                )
                return Answer(done, CREATED if created else KNOWN, etag(done.entity.version))

            return await call.write(work)

        return await service.race(once)

    @get(
        "/{entity_id:uuid}/acts",
        operation_id="listEntityActs",
        opt={"permission": "read"},
        summary="List the merges and splits of an entity",
    )
    async def acts(
        self,
        entity_id: FromPath[UUID],
        call: Call,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[EntityAct]:
        """List what was merged into an entity or split off it and what of that was undone, newest first."""
        return await call.read(lambda tx: list_acts(tx, call.principal, entity_id, cursor, limit))

    @post(
        "/{entity_id:uuid}/acts/{entity_act_id:uuid}/undo",
        operation_id="undoEntityAct",
        opt={"permission": "write"},
        status_code=200,
        summary="Undo a merge or a split",
    )
    async def undo(
        self, entity_id: FromPath[UUID], entity_act_id: FromPath[UUID], call: Call, idempotency_key: Key = None
    ) -> Response[UndoneAct]:
        """Put back all that a merge or a split changed. 409 names what was done since, which has to be undone first."""
        if (known := await call.repeated()) is not None:
            return known
        service, outbox = entity_service(call), call.services.outbox

        async def once() -> Response[UndoneAct]:
            vectors = await service.embed_undo(call.principal, entity_id, entity_act_id)

            async def work(tx: Any) -> Answer[UndoneAct]:  # noqa: ANN401 - as above
                done = await undo_act(tx, outbox, call.principal, entity_id, entity_act_id, vectors, call.request_id)
                return Answer(done, headers=etag(done.entity.version))

            return await call.write(work)

        return await service.race(once)
