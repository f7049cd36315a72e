"""The console on real processes: Postgres, FalkorDB, the service behind uvicorn, a worker, and a Chromium on top.

All browser tests share one stack, since a worker costs seconds to start; each test has a tenant of its own.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import psycopg
import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, Route, sync_playwright
from tests.fixtures.falkor import FalkorProcess, find_free_port
from tests.fixtures.postgres import DatabaseUrls, clone_database
from tests.fixtures.service import ROLES, TestTenant, add_token
from tests.fixtures.waiting import wait_for

from memory_os.app import create_app, open_services
from memory_os.domain.ids import new_id
from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.domain.roles import SCOPES
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.settings import Settings
from memory_os_console import console_router

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = Path(__file__).parent / "assets" / "axe.min.js"
PATIENCE_MS = 20_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process runs all of them: they share the stack."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("browser")
            item.add_marker(pytest.mark.xdist_group("browser"))


@dataclass(frozen=True, slots=True)
class Stack:
    """Where everything is."""

    url: str
    owner_url: str

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement as the superuser; its rows, if it has some."""
        with psycopg.connect(self.owner_url) as connection:
            cursor = connection.execute(statement, values)  # type: ignore[arg-type] # tests' own text
            return cursor.fetchall() if cursor.description else []

    def add_tenant(self) -> TestTenant:
        """A tenant with a token of every role."""
        tenant = TestTenant(new_id(), self.owner_url)
        for role in ROLES:
            tenant.tokens[role] = tenant.add_token(role, scopes=SCOPES)
        return tenant

    def add_root(self) -> str:
        """A token of the instance's root."""
        return add_token(self.owner_url, INSTANCE_TENANT, "root")

    def store(self, tenant: TestTenant, *texts: str) -> list[str]:
        """Store memories over REST; their ids, once all of them are in the graph."""
        items = [{"text": text, "label": "Event"} for text in texts]
        headers = tenant.headers("writer")
        answer = httpx.post(f"{self.url}/v1/memories/batch", json={"items": items}, headers=headers, timeout=60)
        assert answer.status_code == 200, answer.text
        wait_for(lambda: not self.unsettled(tenant), seconds=60, what="the projection")
        return [result["memory_id"] for result in answer.json()["results"]]

    def unsettled(self, tenant: TestTenant) -> int:
        """Events that a worker still has to deal with."""
        rows = self.sql(
            "SELECT count(*) FROM outbox_events WHERE tenant_id = %s AND status IN ('pending', 'leased')",
            tenant.tenant_id,
        )
        return int(rows[0][0])

    def add_dead(self, tenant: TestTenant, *, error: str, event_type: str = "GRAPH_UPSERT") -> int:
        """A dead event of a memory that was deleted, as a worker would have left it."""
        name, _, message = error.partition(": ")
        memory = new_id()
        # Without its tombstone the memory would be one that the worker can't see, and a retry would fail.
        self.sql(
            "INSERT INTO graph_tombstones (tenant_id, aggregate_type, aggregate_id, version) "
            "VALUES (%s, 'memory', %s, 2)",
            *(tenant.tenant_id, memory),
        )
        rows = self.sql(
            "INSERT INTO outbox_events (tenant_id, event_type, aggregate_type, aggregate_id, version, status, "
            "attempts, last_error, errors, finished_at) VALUES (%s, %s, 'memory', %s, 1, 'dead', 5, %s, "
            "jsonb_build_array(jsonb_build_object('at', now(), 'class', %s::text, 'message', %s::text, "
            "'fingerprint', 'aaaaaaaaaaaa', 'worker', %s::text, 'traceback', %s::text)), now()) RETURNING id",
            *(tenant.tenant_id, event_type, memory, error, name, message, str(new_id()), f"Traceback\n{error}"),
        )
        return int(rows[0][0])


@contextmanager
def serve(settings: Settings, port: int) -> Iterator[None]:
    """The service and its console in a thread."""
    server: list[uvicorn.Server] = []

    async def run() -> None:
        async with open_services(settings) as services:
            stopping = asyncio.Event()
            app = create_app(services, console=[console_router(services, stopping=stopping)])
            config = uvicorn.Config(app, port=port, log_config=None, access_log=False, timeout_graceful_shutdown=2)
            server.append(uvicorn.Server(config))
            await server[0].serve()

    thread = Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        wait_for(lambda: thread.is_alive() and server and server[0].started, seconds=60, what="the service")
        yield
    finally:
        if server:
            server[0].should_exit = True
        thread.join(timeout=30)


@contextmanager
def work(settings: Settings, log: Path) -> Iterator[None]:
    """A worker process."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("FALKOR", "DATABASE"))},
        **{name.upper(): str(getattr(settings, name)) for name in ("graph_backend", "falkor_port", "graph_prefix")},
        "DATABASE_URL": settings.worker_url(),
        "ENABLE_GRAPH_MEMORY": "true",
        "EMBEDDING_PROVIDER": "deterministic-for-tests",
        "MEMORY_OS_ALLOW_TEST_EMBEDDER": "true",
        "OUTBOX_BACKOFF_BASE_S": "0.05",
        "OUTBOX_BACKOFF_CAP_S": "0.2",
        "WORKER_POLL_S": "0.2",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "memory_os", "worker"], env=environment, cwd=log.parent, stdout=output, stderr=output
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=20)


@pytest.fixture(scope="session")
def stack(
    postgres_server: EmbeddedPostgres,
    template_database: str,
    falkor_server: FalkorProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """Everything, running."""
    clones = clone_database(postgres_server, template_database)
    urls: DatabaseUrls = next(clones)
    port = find_free_port()
    settings = Settings(
        _env_file=None,
        database_url=urls.app_url,
        worker_database_url=urls.worker_url,
        enable_graph_memory=True,
        graph_backend="falkor",
        falkor_port=falkor_server.port,
        graph_prefix="browser",
        embedding_provider="deterministic-for-tests",
        memory_os_allow_test_embedder=True,
        log_level="error",
    )
    log = tmp_path_factory.mktemp("worker") / "worker.log"
    with serve(settings, port), work(settings, log):
        made = Stack(f"http://127.0.0.1:{port}", urls.owner_url)
        wait_for(lambda: made.sql("SELECT 1 FROM workers"), seconds=60, what=f"the worker: {log}")
        yield made
    for _ in clones:
        pass


@pytest.fixture
def tenant(stack: Stack) -> TestTenant:
    """A tenant of the test's own."""
    return stack.add_tenant()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A Chromium, gone with its module: as long as Playwright runs, no asynchronous test could in this thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser
        browser.close()


@dataclass(slots=True)
class Watch:
    """What went on in a browser that must not: requests to elsewhere, dialogs, violated policies, errors of scripts."""

    elsewhere: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


OpenContext = Callable[..., BrowserContext]


@pytest.fixture
def watch() -> Watch:
    """Filled by every context of the test; empty at the end, or the test fails."""
    return Watch()


@pytest.fixture
def open_context(stack: Stack, chromium: Browser, watch: Watch) -> Iterator[OpenContext]:
    """Opens browser contexts (options as Playwright has them) whose requests can't leave the service."""
    opened: list[BrowserContext] = []

    def guard(route: Route) -> None:
        if route.request.url.startswith(stack.url + "/"):
            route.continue_()
        else:
            watch.elsewhere.append(route.request.url)
            route.abort()

    def look_after(page: Page) -> None:
        page.on("dialog", lambda dialog: (watch.dialogs.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: watch.complaints.append(str(error)))
        page.on("console", lambda message: note(message.type, message.text))

    def note(kind: str, text: str) -> None:
        # An answer with an error status that a test provokes is reported as an error, too.
        if kind == "error" and not text.startswith("Failed to load resource"):
            watch.complaints.append(text)

    def open_one(**options: Any) -> BrowserContext:
        context = chromium.new_context(base_url=stack.url, **options)
        context.set_default_timeout(PATIENCE_MS)
        context.route("**/*", guard)
        context.on("page", look_after)
        opened.append(context)
        return context

    yield open_one
    for context in opened:
        context.close()
    assert watch == Watch()


@pytest.fixture
def page(open_context: OpenContext) -> Page:
    """A page in a browser that nobody has logged in with."""
    return open_context().new_page()


def log_in(page: Page, token: str) -> None:
    """Log in and arrive at the overview."""
    page.goto("/console/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Overview").wait_for()
