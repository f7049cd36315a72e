"""Structural calls: what edges, links and mentions say about a memory or an entity, and what changed since a moment."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from litestar import Controller, get
from litestar.params import FromPath, QueryParameter

from memory_os.api.calls import ActiveCall, Call
from memory_os.api.parameters import CURSOR, LIMIT, Limit, MomentParameter
from memory_os.checking import check_word, parse_moment
from memory_os.domain.shapes import Cursor
from memory_os.retrieval.structure import (
    CLOSED,
    OPEN,
    STANCES,
    Asked,
    Node,
    backing_of,
    decisions_of,
    everything_about,
    tasks_of,
)
from memory_os.retrieval.structure_model import Backing, Change, SourceBehind, Task, TiedRecord
from memory_os.retrieval.tracing import changes_about, changes_after, changes_since, sources_behind
from memory_os.storage.pages import Page

_READ: Final = {"permission": "read"}
_TASKS: Final = {"open": OPEN, "closed": CLOSED, "all": None}

Past = Annotated[
    str | None,
    QueryParameter(
        schema_extra={"enum": ["history"]}, description="`history` brings what does not hold any more, too, labelled."
    ),
]
TaskStatus = Annotated[
    str, QueryParameter(schema_extra={"enum": list(_TASKS)}, description="Whether they are still to be done.")
]
StanceName = Annotated[
    str | None, QueryParameter(schema_extra={"enum": list(STANCES)}, description="One side alone; both by default.")
]
Since = MomentParameter
Go = Annotated[Cursor | None, CURSOR]
Rows = Annotated[Limit, LIMIT]


class EntityStructureController(Controller):
    """What ties say about an entity."""

    path = "/v1/memory/entities/{entity_id:uuid}"
    tags = ["structure"]  # noqa: RUF012 - Litestar reads it from the class

    @get("/everything", operation_id="listEverything", opt=_READ, summary="Everything about an entity, newest first")
    async def everything(
        self,
        entity_id: FromPath[UUID],
        call: Call,
        as_of: MomentParameter = None,
        include: Past = None,
        cursor: Go = None,
        limit: Rows = 50,
    ) -> Page[TiedRecord]:
        """List memories that mention it or have an edge to it, and the records and entities that links tie to it."""
        asked = _asked(as_of, include, cursor, limit)
        return await call.read(lambda tx: everything_about(tx, entity_id, asked))

    @get("/decisions", operation_id="listDecisionsOfEntity", opt=_READ, summary="The decisions of a project")
    async def decisions(
        self,
        entity_id: FromPath[UUID],
        call: Call,
        as_of: MomentParameter = None,
        include: Past = None,
        cursor: Go = None,
        limit: Rows = 50,
    ) -> Page[TiedRecord]:
        """List the decisions that belong to an entity, a project for example, newest first; current ones by default."""
        asked = _asked(as_of, include, cursor, limit)
        return await call.read(lambda tx: decisions_of(tx, Node(entity=entity_id), asked))

    @get("/tasks", operation_id="listTasksOfEntity", opt=_READ, summary="The open tasks of a project or a person")
    async def tasks(
        self,
        entity_id: FromPath[UUID],
        call: Call,
        status: TaskStatus = "open",
        as_of: MomentParameter = None,
        include: Past = None,
        cursor: Go = None,
        limit: Rows = 50,
    ) -> Page[Task]:
        """List goals and commitments that belong to an entity, or that it is bound to, with their owners."""
        asked = _asked(as_of, include, cursor, limit)
        return await _tasks(call, Node(entity=entity_id), status, asked)

    @get("/changes", operation_id="listChangesOfEntity", opt=_READ, summary="What changed about an entity")
    async def changes(
        self, entity_id: FromPath[UUID], call: Call, since: Since = None, cursor: Go = None, limit: Rows = 50
    ) -> Page[Change]:
        """List what became of memories that are tied to an entity since a moment, the oldest first."""
        moment = parse_moment("since", since)
        return await call.read(lambda tx: changes_about(tx, entity_id, moment, cursor, limit))


class MemoryStructureController(Controller):
    """What ties say about a memory."""

    path = "/v1/memories/{memory_id:uuid}"
    tags = ["structure"]  # noqa: RUF012 - Litestar reads it from the class

    @get("/decisions", operation_id="listDecisionsOfMemory", opt=_READ, summary="The decisions of a project")
    async def decisions(
        self,
        memory_id: FromPath[UUID],
        call: Call,
        as_of: MomentParameter = None,
        include: Past = None,
        cursor: Go = None,
        limit: Rows = 50,
    ) -> Page[TiedRecord]:
        """List the decisions that belong to a memory, a Project or Goal for example, newest first."""
        asked = _asked(as_of, include, cursor, limit)
        return await call.read(lambda tx: decisions_of(tx, Node(memory=memory_id), asked))

    @get("/tasks", operation_id="listTasksOfMemory", opt=_READ, summary="The open tasks of a project")
    async def tasks(
        self,
        memory_id: FromPath[UUID],
        call: Call,
        status: TaskStatus = "open",
        as_of: MomentParameter = None,
        include: Past = None,
        cursor: Go = None,
        limit: Rows = 50,
    ) -> Page[Task]:
        """List goals and commitments that belong to a memory, a Project for example, with their owners."""
        asked = _asked(as_of, include, cursor, limit)
        return await _tasks(call, Node(memory=memory_id), status, asked)

    @get("/support", operation_id="listSupport", opt=_READ, summary="What supports and what contradicts a claim")
    async def support(
        self,
        memory_id: FromPath[UUID],
        call: Call,
        stance: StanceName = None,
        as_of: MomentParameter = None,
        include: Past = None,
        cursor: Go = None,
        limit: Rows = 50,
    ) -> Page[Backing]:
        """List the memories and entities that an edge says to be evidence for a memory, or to contradict it."""
        check_word("/stance", stance, STANCES, noun="side")
        asked = _asked(as_of, include, cursor, limit)
        side: Any = stance
        return await call.read(lambda tx: backing_of(tx, memory_id, side, asked))

    @get("/sources", operation_id="listSourcesBehind", opt=_READ, summary="The sources behind a claim")
    async def sources(
        self, memory_id: FromPath[UUID], call: Call, cursor: Go = None, limit: Rows = 50
    ) -> Page[SourceBehind]:
        """List the evidence of a memory, and of those that it was extracted from or that support it, newest first."""
        return await call.read(lambda tx: sources_behind(tx, memory_id, cursor, limit))

    @get("/changes", operation_id="listChangesAfterMemory", opt=_READ, summary="What changed after an event")
    async def changes(self, memory_id: FromPath[UUID], call: Call, cursor: Go = None, limit: Rows = 50) -> Page[Change]:
        """List what became of all memories after this one happened, or else was recorded, the oldest first."""
        return await call.read(lambda tx: changes_after(tx, memory_id, cursor, limit))


class ChangesController(Controller):
    """What changed since a moment."""

    path = "/v1/changes"
    tags = ["structure"]  # noqa: RUF012 - Litestar reads it from the class

    @get("/", operation_id="listChanges", opt=_READ, summary="What changed since a moment")
    async def list_all(self, call: Call, since: Since = None, cursor: Go = None, limit: Rows = 50) -> Page[Change]:
        """List what became of memories after a moment, stored ones and acts, the oldest first."""
        moment = parse_moment("since", since)
        return await call.read(lambda tx: changes_since(tx, moment, cursor, limit))


def _asked(as_of: str | None, include: str | None, cursor: str | None, limit: int) -> Asked:
    check_word("/include", include, ("history",), noun="thing to include")
    return Asked(parse_moment("as_of", as_of), include is not None, cursor, limit)


async def _tasks(call: ActiveCall, node: Node, status: str, asked: Asked) -> Page[Task]:
    check_word("/status", status, _TASKS, noun="status of tasks")
    return await call.read(lambda tx: tasks_of(tx, node, _TASKS[status], asked))
