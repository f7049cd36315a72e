"""The OpenAPI document is kept: whatever is sent to a call is answered as the document says, and never with a 5xx.

Schemathesis makes requests that fit the document and requests that do not, the same ones in every run, follows what one
call stores into the next, and sends all of it to the application on a real Postgres.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import schemathesis
from litestar import Litestar
from litestar.types import Receive, Scope, Send
from schemathesis import engine, openapi
from schemathesis.core.transport import Response
from schemathesis.engine import events
from schemathesis.engine.recorder import ScenarioRecorder
from schemathesis.python import asgi
from tests.fixtures.postgres import DatabaseUrls, clone_database
from tests.fixtures.service import add_token

from memory_os.app import create_app, open_services
from memory_os.domain.ids import new_id
from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.settings import Settings

pytestmark = pytest.mark.timeout(600)  # a minute on two idle cores, for some 4,000 requests

EXAMPLES = 5
"""Random requests for each call, beside the some 50 that go through the bounds of its document one by one."""

SEED = 20_260_131

LEFT_OUT = {
    "positive_data_acceptance": "what fits a shape may still contradict itself or what is stored: that is a 422",
    "allow_header_conformance": "Litestar keeps several routes at one address, and its OPTIONS tells of one of them",
}
"""Checks of schemathesis that are off, and why."""


class ServedApp:
    """The application with its services, which live in the loop that serves it, for as long as it does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app: Litestar | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":  # type: ignore[comparison-overlap] # Litestar's type leaves it out
            await self._live(receive, send)
        else:
            assert self._app
            await self._app(scope, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        async with open_services(self._settings) as services:
            self._app = create_app(services)
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


@pytest.fixture(scope="module")
def fuzzed_database(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[DatabaseUrls]:
    yield from clone_database(postgres_server, template_database)


@pytest.fixture(scope="module")
def served_app(fuzzed_database: DatabaseUrls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedApp]:
    yield ServedApp(
        Settings(
            _env_file=None,
            database_url=fuzzed_database.app_url,
            embedding_provider="deterministic-for-tests",
            memory_os_allow_test_embedder=True,
            enable_graph_memory=True,
            graph_dir=tmp_path_factory.mktemp("graph"),
            rate_limit_per_minute=0,
        )
    )
    asgi.shutdown_lifespans()


@pytest.fixture(scope="module")
def document(served_app: ServedApp) -> dict[str, Any]:
    return dict(openapi.from_asgi("/schema/openapi.json", served_app).raw_schema)


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    openapi.from_dict(document).validate()


def test_every_call_says_how_it_refuses(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if path.startswith("/v1/"):
                assert operation["security"] == [{"token": []}], (method, path)
                assert {"401", "403", "422", "429"} <= operation["responses"].keys(), (method, path)
                assert operation["summary"]
                assert operation["tags"]


def test_an_admin_is_answered_as_the_document_says(
    served_app: ServedApp, document: dict[str, Any], fuzzed_database: DatabaseUrls
) -> None:
    token = add_token(fuzzed_database.owner_url, new_id(), "admin", scopes=["act_as"])
    statuses = _fuzz(served_app, document, token)
    assert statuses.keys() >= {200, 201, 401, 404, 405, 422}  # it came further than the door


def test_root_is_answered_as_the_document_says(
    served_app: ServedApp, document: dict[str, Any], fuzzed_database: DatabaseUrls
) -> None:
    token = add_token(fuzzed_database.owner_url, INSTANCE_TENANT, "root")
    statuses = _fuzz(served_app, document, token, "admin", "outbox", "graph")
    assert statuses.keys() >= {200, 201, 401, 404, 405, 422}


def _fuzz(app: ServedApp, document: dict[str, Any], token: str, *tags: str) -> Counter[int]:
    """Send everything; returns how often each status was answered."""
    schema = openapi.from_dict(_without_acting(document, tags), config=_config(token))
    schema.app, schema.location = app, "/schema/openapi.json"
    statuses: Counter[int] = Counter()
    faults: list[str] = []
    for event in engine.from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            faults += _failures(event.recorder)
            for interaction in event.recorder.interactions.values():
                if interaction.response is not None:
                    statuses[interaction.response.status_code] += 1
                    faults += _no_problem_document(event.recorder.label, interaction.response)
        elif isinstance(event, events.NonFatalError):
            faults.append(f"{event.label}: {event.value!r}")
        elif isinstance(event, events.FatalError):
            raise event.exception
    assert not faults, "\n\n".join(faults)
    return statuses


def _without_acting(document: dict[str, Any], tags: tuple[str, ...]) -> dict[str, Any]:
    """The document, or its calls with these tags, without the headers that stop most random requests at the door."""
    paths: dict[str, Any] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if not tags or not set(tags).isdisjoint(operation["tags"]):
                kept = [parameter for parameter in operation.get("parameters", ()) if "$ref" not in parameter]
                paths.setdefault(path, {})[method] = {**operation, "parameters": kept}
    return deepcopy({**document, "paths": paths})  # schemathesis notes in it which calls it saw lead to which


def _config(token: str) -> schemathesis.Config:
    return schemathesis.Config.from_dict(
        {
            "seed": SEED,
            "headers": {"Authorization": f"Bearer {token}"},
            "generation": {"deterministic": True, "max-examples": EXAMPLES, "no-shrink": True},
            "continue-on-failure": True,
            "checks": {name: {"enabled": False} for name in LEFT_OUT},
            "operations": [
                # A batch answers 200 with an outcome for each item, malformed ones too.
                {
                    "include-operation-id": "storeMemories",
                    "checks": {"negative_data_rejection": {"enabled": False}},
                }
            ],
        }
    )


def _failures(recorder: ScenarioRecorder) -> Iterator[str]:
    for case, made in recorder.checks.items():
        for check in made:
            if check.failure_info is not None:
                response = recorder.find_response(case_id=case)
                answer = response.content[:500] if response else b""
                failure = check.failure_info
                yield f"{recorder.label}: {check.name}: {failure.failure}\n{failure.code_sample}\n{answer!r}"


def _no_problem_document(label: str, response: Response) -> Iterator[str]:
    """What is wrong with a refusal that no check of the document's looks at, such as a 405."""
    if response.status_code < 400:
        return
    kind = response.headers.get("content-type", [""])[0]
    if kind != "application/problem+json" or "x-request-id" not in response.headers:
        yield f"{label}: {response.status_code} as {kind} with {sorted(response.headers)}"
    elif response.request.method != "HEAD" and response.json()["status"] != response.status_code:
        yield f"{label}: {response.status_code} with {response.content[:500]!r}"
