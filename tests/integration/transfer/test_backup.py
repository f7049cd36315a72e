"""A stack's backup, taken under load, restored into an empty home: everything acknowledged is there, and the graph is
made anew.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.fixtures.postgres import make_open_directory
from tests.fixtures.waiting import wait_for

from memory_os.embedded.ready import ReadyFile

PROGRAM = (sys.executable, "-m", "memory_os")
TEST_EMBEDDER = {"EMBEDDING_PROVIDER": "deterministic-for-tests", "MEMORY_OS_ALLOW_TEST_EMBEDDER": "1"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the servers' user can pass through, gone after the test."""
    import shutil  # noqa: PLC0415 - for this alone

    path = make_open_directory("memory-os-test-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


def environment(**more: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE", "OWNER_", "FALKOR"))}
    return {**own, **TEST_EMBEDDER, **more}


def command(*arguments: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the service."""
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)], cwd=cwd, env=environment(**env), capture_output=True, text=True, check=False
    )


class Stack:
    """`memory-os up` on a home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ready_path = home.with_name(f"{home.name}.ready.json")
        self.output = home.with_name(f"{home.name}.output")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*PROGRAM, "up", "--home", str(home), "--port", "0", "--ready-file", str(self.ready_path)],
                cwd=home.parent,
                env=environment(),
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def ready(self) -> ReadyFile:
        def probe() -> ReadyFile | None:
            assert self.process.poll() is None, self.output.read_text()
            return ReadyFile.read(self.ready_path) if self.ready_path.exists() else None

        return wait_for(probe, seconds=60, what="the ready file")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)


@pytest.fixture
def up(folder: Path) -> Iterator[Callable[[str], Stack]]:
    """Starts stacks; whatever still runs at the end is ended."""
    stacks: list[Stack] = []

    def start(name: str) -> Stack:
        stacks.append(Stack(folder / name))
        return stacks[-1]

    yield start
    for stack in stacks:
        stack.stop()


class Writer(threading.Thread):
    """Stores one memory after the other, and keeps the ids of those that were acknowledged."""

    def __init__(self, ready: ReadyFile) -> None:
        super().__init__()
        self.ready = ready
        self.acknowledged: list[str] = []
        self.ended = threading.Event()

    def run(self) -> None:
        with client_of(self.ready) as client:
            while not self.ended.is_set():
                number = len(self.acknowledged)
                body = {"text": f"Crate {number} went to Mill Lane.", "label": "Event", "dedup": "off"}
                answer = client.post("/v1/memories", json=body)
                assert answer.status_code == 201
                self.acknowledged.append(answer.json()["memory"]["id"])

    def wait_for_more(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        wait_for(lambda: len(self.acknowledged) >= wanted, what="more memories")


def client_of(ready: ReadyFile) -> httpx.Client:
    return httpx.Client(base_url=ready.api, headers={"Authorization": f"Bearer {ready.token}"}, timeout=20)


def falkor_of(ready: ReadyFile) -> dict[str, str]:
    """Settings by which a command beside the stack reaches its stores."""
    password, _, address = ready.graph_url.removeprefix("redis://:").partition("@")
    host, _, port = address.partition(":")
    graph = {"FALKOR_HOST": host, "FALKOR_PORT": port, "FALKOR_PASSWORD": password, "GRAPH_BACKEND": "falkor"}
    worker = ready.database_url.replace("memory_os_app", "memory_os_worker")
    return {**graph, "DATABASE_URL": ready.database_url, "WORKER_DATABASE_URL": worker, "ENABLE_GRAPH_MEMORY": "true"}


def test_a_backup_under_load_comes_back_in_an_empty_home(folder: Path, up: Callable[[str], Stack]) -> None:
    first = up("home")
    ready = first.ready()
    writer = Writer(ready)
    writer.start()
    try:
        writer.wait_for_more(50)
        before = list(writer.acknowledged)
        done = command("backup", "--to", folder / "all.dump", "--home", first.home, cwd=folder)
        writer.wait_for_more(5)
    finally:
        writer.ended.set()
        writer.join()
    assert done.returncode == 0, done.stderr
    assert "all.dump" in done.stderr
    assert stat.S_IMODE((folder / "all.dump").stat().st_mode) == 0o600
    with client_of(ready) as client:
        (entry,) = client.get("/v1/audit", params={"action": "backup"}).json()["items"]
        assert list(entry["detail"]) == ["at"]
        token = client.post("/v1/tokens", json={"role": "reader"}).json()
    first.stop()
    later = folder / "later.jsonl"
    moved = command("export", "--tenant", ready.tenant_id, "--to", later, "--home", first.home, cwd=folder)
    assert moved.returncode == 0, moved.stderr

    restored = folder / "restored"
    back = command("restore", "--from", folder / "all.dump", "--home", restored, cwd=folder)
    assert back.returncode == 0, back.stderr
    assert f"memory-os graph rebuild --tenant {ready.tenant_id}" in back.stderr
    again = command("restore", "--from", folder / "all.dump", "--home", restored, cwd=folder)
    assert again.returncode == 2
    assert "has data" in again.stderr

    second = up("restored")
    ready_again = second.ready()
    with httpx.Client(
        base_url=ready_again.api, headers={"Authorization": f"Bearer {ready.token}"}, timeout=20
    ) as client:
        there = [client.get(f"/v1/memories/{ident}").status_code for ident in before]
        assert set(there) == {200}
        late = client.get("/v1/tokens", headers={"Authorization": f"Bearer {token['token']}"})
        assert late.status_code == 401  # it was made after the backup
    assert "Loading the sample" not in second.output.read_text()
    brought = command("import", "--tenant", ready.tenant_id, "--from", later, "--home", restored, cwd=folder)
    assert brought.returncode == 0, brought.stderr
    with client_of(ready_again) as client:
        found = [client.get(f"/v1/memories/{ident}").status_code for ident in writer.acknowledged]
        assert set(found) == {200}
    rebuilt = command("graph", "rebuild", "--tenant", ready.tenant_id, cwd=folder, **falkor_of(ready_again))
    assert rebuilt.returncode == 0 or "pending or running" in rebuilt.stderr, rebuilt.stderr

    def equal() -> str | None:
        verified = command("graph", "verify", cwd=folder, **falkor_of(ready_again))
        return verified.stdout if verified.returncode == 0 else None

    assert "equal" in wait_for(equal, seconds=30, what="an equal graph")
