"""What every benchmark runs on: throw-away stores in a temporary folder, a tenant, and a client that costs little."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg

from memory_os.admin.tokens import make_token
from memory_os.domain.ids import new_id
from memory_os.embedded.falkor import EmbeddedFalkor
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.embedded.sockets import find_free_port
from memory_os.storage.migrate import upgrade

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Stores:
    """Running stores with one tenant."""

    postgres: EmbeddedPostgres
    falkor: EmbeddedFalkor
    tenant_id: UUID
    token: str

    @property
    def owner_url(self) -> str:
        """Connection of the superuser, for raw limits and set-up."""
        return self.postgres.url("postgres")

    def environment(self, **settings: str) -> dict[str, str]:
        """Settings of a service on these stores, with vectors that cost nothing (embedding is measured apart)."""
        _, _, address = self.falkor.url.rpartition("@")
        host, _, port = address.partition(":")
        password = self.falkor.url.removeprefix("redis://:").rpartition("@")[0]
        return {
            **os.environ,
            "DATABASE_URL": self.postgres.url("memory_os_app"),
            "WORKER_DATABASE_URL": self.postgres.url("memory_os_worker"),
            "ENABLE_GRAPH_MEMORY": "true",
            "GRAPH_BACKEND": "falkor",
            "FALKOR_HOST": host,
            "FALKOR_PORT": port,
            "FALKOR_PASSWORD": password,
            "EMBEDDING_PROVIDER": "deterministic-for-tests",
            "MEMORY_OS_ALLOW_TEST_EMBEDDER": "1",
            "RATE_LIMIT_PER_MINUTE": "0",
            "LOG_LEVEL": "warning",
            **settings,
        }


@contextmanager
def stores(home: Path | None = None) -> Iterator[Stores]:
    """Stores with the settings of `memory-os up`, fsync on, at the newest revision.

    Args:
        home: Where they are kept from run to run; None makes fresh ones that are gone afterwards.
    """
    folder = home or Path(tempfile.mkdtemp(prefix="memory-os-bench-", dir="/tmp"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)
    postgres, falkor = EmbeddedPostgres(folder / "home"), EmbeddedFalkor(folder / "home")
    try:
        postgres.start()
        falkor.start()
        upgrade(postgres.url("postgres"))
        with psycopg.connect(postgres.url("postgres")) as connection:
            tenant_id = _first_tenant(connection)
            token = add_token(connection, tenant_id)
        yield Stores(postgres, falkor, tenant_id, token)
    finally:
        falkor.stop()
        postgres.stop()
        if home is None:
            shutil.rmtree(folder, ignore_errors=True)


def _first_tenant(connection: psycopg.Connection) -> UUID:
    """The tenant `benchmark`, which kept stores have already."""
    row = connection.execute("SELECT tenant_id FROM tenants WHERE name = 'benchmark'").fetchone()
    if row is None:
        row = (new_id(),)
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'benchmark')", row)
    ident: UUID = row[0]
    return ident


def add_token(connection: psycopg.Connection, tenant_id: UUID) -> str:
    """A token of an admin of the tenant."""
    token = make_token()
    connection.execute(
        "INSERT INTO tokens (tenant_id, id, prefix, secret_hash, role, scopes) "
        "VALUES (%s, %s, %s, %s, 'admin', ARRAY['act_as'])",
        (tenant_id, new_id(), token.prefix, token.secret_hash),
    )
    return token.token


def add_tenants(on: Stores, count: int) -> list[UUID]:
    """More tenants beside the first."""
    made = [new_id() for _ in range(count)]
    with psycopg.connect(on.owner_url) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO tenants (tenant_id, name) VALUES (%s, %s)", [(ident, f"benchmark {ident}") for ident in made]
        )
    return made


@contextmanager
def service(
    on: Stores, *, workers: int = 0, command: Sequence[str] = ("-m", "memory_os"), **settings: str
) -> Iterator[str]:
    """An API process and workers on the stores; yields the API's address.

    Args:
        on: The stores.
        workers: How many workers.
        command: What Python runs as the product's command line (see `embedders.py`).
        **settings: Settings over those of `Stores.environment`.
    """
    port = find_free_port()
    environment = on.environment(**settings)
    program = [sys.executable, *command]
    processes = [subprocess.Popen([*program, "api", "--port", str(port)], env=environment)]
    processes += [subprocess.Popen([*program, "worker"], env=environment) for _ in range(workers)]
    try:
        wait_until(lambda: _ready(port), 60, "the API to answer")
        yield f"http://127.0.0.1:{port}"
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=20)


def _ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=1).status_code == 200
    except httpx.TransportError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float, what: str, *, every_s: float = 0.02) -> None:
    """Poll a condition.

    Raises:
        TimeoutError: Naming what did not happen.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(every_s)


class Wire:
    """A bare HTTP/1.1 client: a few microseconds a request, so that it measures the server and not itself."""

    def __init__(self, address: str, token: str) -> None:
        self._host, _, port = address.removeprefix("http://").partition(":")
        self._port = int(port)
        self._head = f"Host: bench\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send one POST and read its answer."""
        head = f"POST {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length"))
        return int(lines[0].split(" ")[1]), await self._reader.readexactly(length)

    def close(self) -> None:
        """Disconnect."""
        self._writer.close()


def quantile(values: Sequence[float], share: float) -> float:
    """A quantile by rank, e.g. 0.95."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median_of(run: Callable[[], float], times: int = 3) -> float:
    """The median of a few runs: one run on a busy machine says little."""
    return statistics.median(run() for _ in range(times))


def parser(description: str, example: str) -> argparse.ArgumentParser:
    """A command line with an example."""
    return argparse.ArgumentParser(
        description=description, epilog=f"Example: {example}", formatter_class=argparse.RawDescriptionHelpFormatter
    )


def report(name: str, figures: dict[str, Any]) -> None:
    """Print figures as JSON and keep them under `benchmarks/results/`."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    print(text)
