"""The operations of the application, from its own document, and how each is called with the ids of a world.

An operation that is new is called with what its document says; where that is not enough, `test_every_route` fails and
names it, and what to send belongs into `BODIES`, or the id that it needs into the worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
from litestar import Litestar
from litestar.routes import HTTPRoute

from memory_os.domain.roles import PERMISSIONS

Ids = Mapping[str, str]
Json = dict[str, Any]

ORDER = ("GET", "POST", "PATCH", "PUT", "DELETE")
"""Calls that read come first and those that delete last, so that one world serves all."""

BEFORE_OTHERS = ("deleteLink", "deleteEdge", "withdrawEvidence", "cancelRebuild", "undoMemoryAct", "undoEntityAct")
"""Deletions of what other deletions take with them, the cancelling of what would stand in the way of another, and the
undoing of an act, which nothing may have followed."""

AFTER_OTHERS = ("eraseUser",)
"""What leaves nothing for others to be called with."""

ABOUT_USERS = ("exportUser", "eraseUser")
"""Calls about a user, whom nobody declares: of one that is not known there is nothing, and that is no fault."""

EVENTS = {
    "retryEvent": "dead_event",
    "cancelRebuild": "waiting_rebuild",
    "completeMemory": "goal",
    "abandonMemory": "plan",
    "archiveMemory": "spare",
    "restoreMemory": "archived",
    "retractMemory": "mistake",
    "supersedeMemory": "older",
    "eraseMemory": "erased",
    "eraseSource": "spare_source",
    "applyCorrection": "doubted",
    "rejectCorrection": "rejected",
    "undoCycleRun": "undone_later",
    "resumeCycleRun": "failed_run",
}
"""Operations that need an id of another kind than their parameter's name says."""

BODIES: dict[str, Callable[[Ids], Json]] = {
    "storeMemory": lambda ids: {
        "text": "The oven needs wood.",
        "label": "Attribute",
        "edges": [{"type": "SUPPORTS", "to": ids["memory"]}],
    },
    "storeMemories": lambda ids: {
        "items": [{"text": "Dough rests.", "label": "Skill", "edges": [{"type": "SUPPORTS", "to": ids["memory"]}]}]
    },
    "storeSource": lambda _: {"kind": "document", "title": "Oven", "passages": [{"text": "It needs wood."}]},
    "changeSource": lambda _: {"title": "Oven"},
    "addPassages": lambda _: {"passages": [{"text": "It needs wood."}]},
    "addEvidence": lambda ids: {"source_id": ids["source"], "support": "mentions"},
    "linkEntity": lambda ids: {"layer": "memory", "target_id": ids["memory"], "relationship": "is named in"},
    "mergeEntities": lambda ids: {"from": ids.get("twin", str(uuid4())), "into": ids["entity"]},
    "splitEntity": lambda ids: {"entity": ids["entity"], "aliases": [ids.get("alias", "Stove")]},
    "storeEdge": lambda ids: {"type": "PART_OF", "from": {"memory": ids["memory"]}, "to": {"entity": ids["entity"]}},
    "changeMemory": lambda _: {"title": "Oven"},
    "changeEntity": lambda _: {"summary": "Oven"},
    "changeObservation": lambda _: {"summary": "Oven"},
    "changeProcedure": lambda _: {"summary": "Oven"},
    "changeOutcome": lambda _: {"summary": "Oven"},
    "createToken": lambda _: {"role": "reader"},
    "createTenant": lambda _: {"name": "Bakery"},
    "changeTenant": lambda _: {"name": "Bakery"},
    "retrieve": lambda _: {"query": "pizza oven"},
    "retrieveContext": lambda _: {"query": "pizza oven"},
    "decideReview": lambda _: {"decision": "keep"},
    "supersedeMemory": lambda _: {"text": "The oven needs gas."},
    "proposeCorrection": lambda ids: {
        "target": ids["memory"],
        "kind": "replace_text",
        "proposal": {"text": "The oven needs coal."},
        "reason": "It was said.",
    },
    "applyCorrection": lambda _: {},
    "giveFeedback": lambda ids: {"used": [ids["memory"]]},
    "runCycle": lambda _: {"cycle": "nightly"},
    "putCycleSchedule": lambda _: {"nightly": {"cron": "0 3 * * *"}},
}


@dataclass(frozen=True)
class Operation:
    """One call of the document; `permissions` are those of which a role needs one, none for a public call."""

    method: str
    path: str
    name: str
    permissions: frozenset[str]
    document: Json

    def roles(self) -> list[str]:
        """The roles that may call it, the least first."""
        return [role for role, has in PERMISSIONS.items() if not has.isdisjoint(self.permissions)]

    def kinds(self) -> dict[str, str]:
        """The kind of record that each parameter of the path means."""
        names = [part[1:-1] for part in self.path.split("/") if part.startswith("{")]
        return {name: self._kind(name) for name in names}

    def _kind(self, name: str) -> str:
        if name == "record_id":
            return next(kind for kind in ("observation", "procedure", "outcome") if f"/{kind}s/" in self.path)
        return EVENTS.get(self.name, name.removesuffix("_id"))

    def url(self, ids: Ids) -> str:
        """The address with these ids."""
        return self.path.format(**{name: quote(ids[kind], safe="") for name, kind in self.kinds().items()})

    def body(self, ids: Ids, schemas: Json) -> Json | None:
        """A body with these ids; None for a call without one."""
        content = self.document.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None:
            return None
        made = BODIES[self.name](ids) if self.name in BODIES else _example(content["schema"], schemas)
        return made if isinstance(made, dict) else {}

    def query_parameters(self) -> Iterator[tuple[str, Json]]:
        """The names of its query parameters, with the whole schema of each."""
        for parameter in self.document.get("parameters", ()):
            if parameter.get("in") == "query":
                yield parameter["name"], parameter["schema"]


class Api:
    """All operations of an application, and a way to call them."""

    def __init__(self, app: Litestar, client: httpx.AsyncClient) -> None:
        document = app.openapi_schema.to_schema()
        self.client = client
        self.schemas: Json = document["components"]["schemas"]
        permissions = dict(_permissions(app))
        self.operations = sorted(
            (
                Operation(method.upper(), path, operation["operationId"], permissions[method.upper(), path], operation)
                for path, item in document["paths"].items()
                for method, operation in item.items()
            ),
            key=lambda operation: (
                operation.name in AFTER_OTHERS,
                ORDER.index(operation.method),
                operation.name not in BEFORE_OTHERS,
            ),
        )

    @property
    def guarded(self) -> list[Operation]:
        """Those that need a token."""
        return [operation for operation in self.operations if operation.permissions]

    async def call(
        self, operation: Operation, ids: Ids, headers: dict[str, str], query: dict[str, str] | None = None
    ) -> httpx.Response:
        """Call an operation with the ids of a world."""
        return await self.client.request(
            operation.method,
            operation.url(ids),
            json=operation.body(ids, self.schemas),
            params=query,
            headers=headers,
        )


def _permissions(app: Litestar) -> Iterator[tuple[tuple[str, str], frozenset[str]]]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for method, (handler, _) in route.route_handler_map.items():
                if handler.resolve_include_in_schema():
                    named = () if handler.opt.get("public") else handler.opt["permission"]
                    found = frozenset({named} if isinstance(named, str) else named)
                    yield (str(method), route.path_format), found


def _example(schema: Json, schemas: Json) -> Any:
    """The least value that fits a schema."""
    if "$ref" in schema:
        return _example(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return _example(next(part for part in schema[choice] if part.get("type") != "null"), schemas)
    if words := schema.get("examples") or schema.get("enum") or ([schema["const"]] if "const" in schema else None):
        return words[0]
    text = {"uuid": str(uuid4()), "date-time": "2026-01-31T12:00:00Z"}.get(schema.get("format", ""))
    least: dict[str, Callable[[], Any]] = {
        "object": lambda: {name: _example(schema["properties"][name], schemas) for name in schema.get("required", ())},
        "array": lambda: [_example(schema["items"], schemas)] * schema.get("minItems", 0),
        "string": lambda: text or "x" * max(1, schema.get("minLength", 1)),
        "integer": lambda: schema.get("minimum", 1),
        "number": lambda: schema.get("minimum", 0),
    }
    return least.get(schema.get("type", ""), lambda: False)()
