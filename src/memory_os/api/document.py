"""The OpenAPI document: what Litestar makes of the handlers, and what it can't read off them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

import msgspec
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, OpenAPI, SecurityScheme

from memory_os import __version__
from memory_os.api.problems import PROBLEM, TITLES, TYPE_BASE
from memory_os.api.reference import PAGE

_DESCRIPTION: Final = """Long-term memory for teams of AI agents.

Every call needs a token, sent as `Authorization: Bearer mos_...`. A token with the scope `act_as` may act for a user,
named with the groups of that user in `X-Memory-User` and `X-Memory-Groups`. Errors are RFC 9457 problem documents."""

_SCHEMA: Final = "#/components/schemas/"
_PAGE: Final = re.compile(r"Page_[\w.]*\.(\w+)_")
"""How Litestar names a page of a list: `Page_memory_os.memories.model.Memory_`."""

Json = dict[str, Any]


def make_config() -> OpenAPIConfig:
    """The configuration that serves the document at `/schema`."""
    token = SecurityScheme(type="http", scheme="bearer", bearer_format="mos_<prefix>_<secret>")
    return DocumentConfig(
        title="Memory OS",
        version=__version__,
        path="/schema",
        render_plugins=[PAGE],
        description=_DESCRIPTION,
        components=Components(security_schemes={"token": token}),
    )


@dataclass
class DocumentConfig(OpenAPIConfig):
    """Litestar's configuration, for a `Document`."""

    def to_openapi_schema(self) -> OpenAPI:
        """The document without its paths, which Litestar adds."""
        made = super().to_openapi_schema()
        return Document(**{field.name: getattr(made, field.name) for field in fields(made)})


@dataclass
class Document(OpenAPI):
    """Litestar's document with the answers that every call may give, and pages named after their rows."""

    def to_schema(self) -> Json:
        """The document as JSON."""
        text = msgspec.json.encode(super().to_schema()).decode()
        document: Json = msgspec.json.decode(_PAGE.sub(r"\1Page", text))
        components = document["components"]
        components["schemas"] |= _exact({"Problem", *components["schemas"]})
        components["headers"] = {"RequestId": _REQUEST_ID}
        components["parameters"] = _ACTING
        components["responses"] = {f"Problem{status}": _problem(status) for status in TITLES}
        for operation in _operations(document):
            _complete(operation, components["schemas"])
        return document


def _exact(names: set[str]) -> Json:
    """The shapes of these names as msgspec describes them.

    Litestar leaves out that unknown fields are refused, bounds of 0, and bounds and vocabularies of what is in a list.
    """
    shapes = defaultdict(list)
    for shape in _subclasses(msgspec.Struct):
        if shape.__module__.startswith("memory_os.") and shape.__name__ in names:
            shapes[shape.__name__].append(shape)
    known = [found[0] for found in shapes.values() if len(found) == 1 and not getattr(found[0], "__parameters__", ())]
    _, schemas = msgspec.json.schema_components(known, ref_template=_SCHEMA + "{name}")
    return schemas


def _subclasses(base: type[Any]) -> Iterator[type[Any]]:
    children: list[type[Any]] = base.__subclasses__()
    for child in children:
        yield child
        yield from _subclasses(child)


_REQUEST_ID: Final[Json] = {
    "description": "The request's id, which its log lines and events carry; the client's own if it sent a tame one.",
    "required": True,
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{8,64}$"},
}
_WITH_ID: Final[Json] = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}


_ACTING: Final[Json] = {
    "User": {
        "name": "X-Memory-User",
        "in": "header",
        "description": "The user that an unbound token with the scope act_as acts for.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    },
    "Groups": {
        "name": "X-Memory-Groups",
        "in": "header",
        "description": "The user's groups, separated by commas; only beside X-Memory-User.",
        "schema": {"type": "string"},
    },
}


def _problem(status: int) -> Json:
    code, title = TITLES[status]
    example = {"type": TYPE_BASE + code, "title": title, "status": status, "detail": "What was wrong, in a sentence."}
    content = {PROBLEM: {"schema": {"$ref": f"{_SCHEMA}Problem"}, "example": example}}
    return {"description": title, "headers": _WITH_ID, "content": content}


def _operations(document: Json) -> Iterator[Json]:
    for item in document["paths"].values():
        yield from (operation for operation in item.values() if isinstance(operation, dict))


def _complete(operation: Json, schemas: Json) -> None:
    responses = operation["responses"]
    if operation.get("security"):
        responses.pop("400", None)  # what Litestar itself would answer
        for status in _problem_statuses(operation):
            responses.setdefault(str(status), {"$ref": f"#/components/responses/Problem{status}"})
        acting = [{"$ref": f"#/components/parameters/{name}"} for name in _ACTING]
        operation["parameters"] = [*operation.get("parameters", ()), *acting]
    if "201" in responses and _brings_id(operation, schemas):
        responses["200"] = {**responses["201"], "description": "It was stored before."}
    for response in responses.values():
        if "$ref" not in response:
            headers = response.get("headers", {})
            # One that a handler only describes comes without a schema, which the specification wants.
            described = {name: {"schema": {"type": "string"}, **header} for name, header in headers.items()}
            response["headers"] = {**described, **_WITH_ID}
    operation["responses"] = dict(sorted(responses.items()))


def _problem_statuses(operation: Json) -> Iterator[int]:
    yield from (401, 403, 422, 429, 503)
    parameters = {(parameter["in"], parameter["name"]) for parameter in operation.get("parameters", ())}
    if "requestBody" in operation:
        yield from (400, 404, 413, 415)
    if any(place == "path" for place, _ in parameters) or ("query", "tenant_id") in parameters:
        yield 404
    if ("header", "If-Match") in parameters:
        yield from (409, 412)
    if str(operation.get("operationId")).startswith("undo"):  # something may have happened since
        yield 409
    if ("header", "Idempotency-Key") in parameters:  # the body is read for it, where there should be none too
        yield from (409, 413)


def _brings_id(operation: Json, schemas: Json) -> bool:
    """Whether the client may name what it stores, so that it may have been stored already."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        name = content["schema"].get("$ref", "").removeprefix(_SCHEMA)
        if "id" in schemas.get(name, {}).get("properties", {}):
            return True
    return False
