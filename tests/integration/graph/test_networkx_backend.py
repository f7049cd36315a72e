"""The directory of the in-process backend: crashes at every point, damage, full disks, and a second process."""
# ruff: noqa: ASYNC220, ASYNC221, ASYNC240 -- a test has nothing else to do while it waits for its files and processes

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.fixtures.graphs import EDGE_TYPES, EMPTY, edge, entity, memory, rref

from memory_os.graph.journal import Journal
from memory_os.graph.networkx import NetworkxBackend
from memory_os.graph.port import (
    CoOccurrence,
    FenceLostError,
    GraphBackend,
    GraphPatch,
    GraphUnavailableError,
    LinkEdge,
    Mention,
)

pytestmark = pytest.mark.anyio

TENANT = UUID("11111111-2222-4333-8444-555555555555")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "graphs"


@pytest.fixture
def snapshot(directory: Path) -> Path:
    return directory / f"{TENANT.hex}.json"


@pytest.fixture
def journal(directory: Path) -> Path:
    return directory / f"{TENANT.hex}.journal"


@pytest.fixture
async def backend(directory: Path) -> AsyncIterator[NetworkxBackend]:
    made = NetworkxBackend(directory, edge_types=EDGE_TYPES)
    await made.open()
    await made.take_fence(TENANT, "token")
    yield made
    await made.close()


def patch(number: int) -> GraphPatch:
    return GraphPatch(
        entities=[entity("a", number), entity(f"e{number}")],
        co_occurrences=[CoOccurrence("a", f"e{number}", 0.5, 1)],
        memories=[memory(f"m{number}", number, valid_from=number)],
        mentions=[Mention(f"m{number}", "a", 0.5)],
        edges=[edge("s", f"m{number}", "m0")],
        links=[LinkEdge(f"l{number}", "a", rref('r"1'), "uses", 0.5)],
    )


async def write(backend: GraphBackend, *numbers: int) -> None:
    for number in numbers:
        await backend.apply(TENANT, "token", patch(number))


async def read_again(directory: Path) -> set[str]:
    """The memories that a new process finds after this one died: the lock is the kernel's to release then."""
    backend = NetworkxBackend(directory, edge_types=EDGE_TYPES)
    await backend.open()
    try:
        return set((await backend.dump(TENANT)).memories)
    finally:
        await backend.close()


def die(backend: NetworkxBackend) -> None:
    """End a backend as SIGKILL would: nothing is written any more, and the lock goes."""
    backend._identity = ""
    backend._lock.release()


async def test_what_was_acknowledged_is_found_again_with_and_without_a_snapshot(
    backend: NetworkxBackend, directory: Path, snapshot: Path, journal: Path
) -> None:
    await write(backend, 0, 1, 2)
    dump = await backend.dump(TENANT)
    die(backend)
    assert not snapshot.exists()
    assert journal.read_bytes().count(b"\n") == 4
    for _ in range(2):  # from the journal, then from the snapshot that the first one left when it closed
        again = NetworkxBackend(directory, edge_types=EDGE_TYPES)
        await again.open()
        assert await again.dump(TENANT) == dump
        await again.apply(TENANT, "token", patch(2))  # the fence survives as well
        with pytest.raises(FenceLostError):
            await again.apply(TENANT, "other", patch(3))
        await again.close()
        assert snapshot.exists()
        assert journal.read_bytes() == b""


async def test_a_line_that_a_crash_cut_off_is_removed_and_nothing_else(
    backend: NetworkxBackend, directory: Path, journal: Path
) -> None:
    await write(backend, 0, 1)
    whole = journal.read_bytes()
    await write(backend, 2)
    torn = journal.read_bytes()
    die(backend)
    for length in (len(whole), len(whole) + 1, len(torn) - 2, len(torn) - 1):
        journal.write_bytes(torn[:length])
        again = NetworkxBackend(directory, edge_types=EDGE_TYPES)
        await again.open()
        assert set((await again.dump(TENANT)).memories) == {"m0", "m1"}
        await write(again, 3)  # the next line does not stick to the torn one
        die(again)
        assert journal.read_bytes().startswith(whole)
        assert await read_again(directory) == {"m0", "m1", "m3"}
        (directory / f"{TENANT.hex}.json").unlink()


@pytest.mark.parametrize("line", [0, 1, 2])
@pytest.mark.parametrize("damage", [b"{", b"\x00" * 10, b"", b'{"number": 2, "patch": 7}', b'{"number": 99}'])
async def test_any_other_damage_is_an_error_that_names_the_file(
    backend: NetworkxBackend, directory: Path, journal: Path, line: int, damage: bytes
) -> None:
    await write(backend, 0, 1)
    lines = journal.read_bytes().split(b"\n")
    die(backend)
    lines[line] = damage
    journal.write_bytes(b"\n".join(lines))
    again = NetworkxBackend(directory, edge_types=EDGE_TYPES)
    await again.open()
    for call in (again.dump(TENANT), again.take_fence(TENANT, "next"), again.apply(TENANT, "token", patch(2))):
        with pytest.raises(GraphUnavailableError, match=str(journal)):
            await call
    other = UUID(int=1)
    await again.take_fence(other, "token")  # the other tenants' graphs are not concerned
    await again.close()
    assert journal.read_bytes() == b"\n".join(lines)


async def test_a_missing_line_and_a_missing_snapshot_are_noticed(
    backend: NetworkxBackend, directory: Path, snapshot: Path, journal: Path
) -> None:
    await write(backend, 0, 1, 2)
    lines = journal.read_bytes().splitlines(keepends=True)
    await backend.close()
    again = NetworkxBackend(directory, edge_types=EDGE_TYPES)
    await again.open()
    await write(again, 3)
    die(again)
    whole = snapshot.read_bytes()
    snapshot.unlink()
    with pytest.raises(GraphUnavailableError, match="missing"):
        await read_again(directory)
    journal.write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(GraphUnavailableError, match="missing"):
        await read_again(directory)
    journal.write_bytes(b"".join(lines))
    snapshot.write_bytes(whole)
    assert await read_again(directory) == {"m0", "m1", "m2"}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"number": 1}', b'{"number":1,"fence":null,"graph":{},"format_version":2}']
)
async def test_a_snapshot_that_is_damaged_or_of_another_format_is_an_error(
    backend: NetworkxBackend, directory: Path, snapshot: Path, content: bytes
) -> None:
    await write(backend, 0)
    await backend.close()
    snapshot.write_bytes(content)
    with pytest.raises(GraphUnavailableError, match=str(snapshot)):
        await read_again(directory)


async def test_the_snapshot_says_what_it_is(backend: NetworkxBackend, snapshot: Path) -> None:
    await write(backend, 0, 1)
    await backend.close()
    content = json.loads(snapshot.read_bytes())
    assert content["format_version"] == 1
    assert {"nodes", "edges"} <= set(content["graph"])


async def test_a_journal_that_has_grown_becomes_a_snapshot(directory: Path, snapshot: Path, journal: Path) -> None:
    backend = NetworkxBackend(directory, edge_types=EDGE_TYPES, journal_limit=3_000)
    await backend.open()
    await backend.take_fence(TENANT, "token")
    sizes = []
    for number in range(20):
        await write(backend, number)
        sizes.append(journal.stat().st_size)
    assert max(sizes) <= 3_000
    assert sizes.count(0) >= 3
    dump = await backend.dump(TENANT)
    die(backend)
    again = NetworkxBackend(directory, edge_types=EDGE_TYPES)
    await again.open()
    assert await again.dump(TENANT) == dump
    await again.close()
    assert snapshot.exists()


CRASH = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.integration.graph.test_networkx_backend import *

async def main():
    backend = NetworkxBackend(Path({directory!r}), edge_types=EDGE_TYPES, journal_limit={limit})
    await backend.open()
    await backend.take_fence(TENANT, "token")
    {trap}
    for number in range({count}):
        await write(backend, number)
        print(number, flush=True)

asyncio.run(main())
"""


def run_to_its_death(directory: Path, *, trap: str = "", limit: int = 10**9, count: int = 5) -> list[int]:
    """Run a writer that kills itself where `trap` says; gives the patches that it acknowledged."""
    script = CRASH.format(root=str(ROOT), directory=str(directory), trap=trap, limit=limit, count=count)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 9, ended.stderr
    return [int(line) for line in ended.stdout.split()]


@pytest.mark.parametrize(
    ("point", "left_over"),
    [
        ("Path.replace = lambda self, target: os._exit(9)", True),  # the new snapshot is whole, but not in its place
        ("os.truncate = lambda path, size: os._exit(9)", False),  # it is in its place, and the journal not yet empty
        ("os.fsync = lambda descriptor: os._exit(9)", False),  # the line is written, and not acknowledged
    ],
)
async def test_a_process_that_dies_at_any_point_loses_nothing_acknowledged(
    directory: Path, point: str, left_over: bool
) -> None:
    acknowledged = run_to_its_death(directory, trap=point, limit=2_000)
    assert [path.suffix for path in directory.glob("*.tmp")] == [".tmp"] * left_over
    found = await read_again(directory)
    written = {f"m{number}" for number in acknowledged}
    assert found in (written, written | {f"m{len(acknowledged)}"})
    assert not list(directory.glob("*.tmp"))


async def test_a_process_killed_in_the_middle_of_writing_loses_nothing_acknowledged(directory: Path) -> None:
    script = CRASH.format(root=str(ROOT), directory=str(directory), trap="", limit=4_000, count=100_000)
    for _ in range(3):
        acknowledged = -1
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            for line in process.stdout:
                acknowledged = int(line)
                if acknowledged == 60:
                    process.send_signal(signal.SIGKILL)
        found = await read_again(directory)
        assert found >= {f"m{number}" for number in range(acknowledged + 1)}


async def test_a_second_process_is_refused_and_told_the_mend(backend: NetworkxBackend, directory: Path) -> None:
    script = CRASH.format(root=str(ROOT), directory=str(directory), trap="", limit=1, count=1)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    for part in (str(directory), str(os.getpid()), "GRAPH_DIR", "GRAPH_BACKEND=falkor"):
        assert part in ended.stderr
    second = NetworkxBackend(directory, edge_types=EDGE_TYPES)
    with pytest.raises(GraphUnavailableError, match="Stop it"):
        await second.open()
    await second.close()
    await backend.close()
    await second.open()
    await second.close()


async def test_files_are_private_and_named_by_the_tenants_id(backend: NetworkxBackend, directory: Path) -> None:
    await write(backend, 0)
    await backend.close()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for path in directory.iterdir():
        assert path.stem in {TENANT.hex, "lock", "owner"}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


async def test_a_full_disk_refuses_the_write_and_keeps_the_file_whole(
    backend: NetworkxBackend, directory: Path, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(backend, 0)
    before = journal.read_bytes()
    real_write = os.write

    def write_half(descriptor: int, content: bytes) -> int:
        real_write(descriptor, bytes(content)[: len(content) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "write", write_half)
        with pytest.raises(GraphUnavailableError, match="No space left"):
            await write(backend, 1)
    assert journal.read_bytes() == before
    assert set((await backend.dump(TENANT)).memories) == {"m0"}
    await write(backend, 2)
    die(backend)
    assert await read_again(directory) == {"m0", "m2"}


async def test_a_snapshot_that_can_not_be_written_is_no_failure_of_the_write(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = NetworkxBackend(directory, edge_types=EDGE_TYPES, journal_limit=1)
    await backend.open()
    await backend.take_fence(TENANT, "token")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(Journal, "write_snapshot", refuse)
        await write(backend, 0, 1)
        await backend.begin_rebuild(TENANT, "token")
        with pytest.raises(GraphUnavailableError, match="rebuilt"):
            await backend.finish_rebuild(TENANT, "token")
    assert set((await backend.dump(TENANT)).memories) == {"m0", "m1"}
    await backend.close()
    assert await read_again(directory) == {"m0", "m1"}


async def test_a_write_whose_caller_is_gone_is_finished_in_memory_as_on_disk(
    backend: NetworkxBackend, directory: Path
) -> None:
    for number in range(10):
        task = asyncio.create_task(write(backend, number))
        for _ in range(number):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await write(backend, 99)
    found = set((await backend.dump(TENANT)).memories)
    assert "m99" in found
    await backend.close()
    assert await read_again(directory) == found


async def test_a_rebuild_that_its_process_does_not_survive_leaves_the_live_graph(
    backend: NetworkxBackend, directory: Path
) -> None:
    await write(backend, 0)
    await backend.begin_rebuild(TENANT, "token")
    await backend.load(TENANT, "token", patch(1))
    die(backend)
    again = NetworkxBackend(directory, edge_types=EDGE_TYPES)
    await again.open()
    assert set((await again.dump(TENANT)).memories) == {"m0"}
    with pytest.raises(FenceLostError):
        await again.finish_rebuild(TENANT, "token")
    await again.begin_rebuild(TENANT, "token")
    await again.load(TENANT, "token", patch(2))
    await again.finish_rebuild(TENANT, "token")
    die(again)
    assert await read_again(directory) == {"m2"}


async def test_a_dropped_graph_leaves_no_files(backend: NetworkxBackend, directory: Path) -> None:
    await write(backend, 0)
    await backend.drop(TENANT)
    assert {path.name for path in directory.iterdir()} == {"lock", "owner"}
    assert await backend.dump(TENANT) == EMPTY
    await backend.close()
    assert await read_again(directory) == set()


async def test_the_identity_changes_when_the_directory_is_opened_again(
    backend: NetworkxBackend, directory: Path
) -> None:
    identity = await backend.ping()
    await backend.close()
    with pytest.raises(GraphUnavailableError):
        await backend.ping()
    with pytest.raises(GraphUnavailableError):
        await write(backend, 0)
    again = NetworkxBackend(directory, edge_types=EDGE_TYPES)
    await again.open()
    assert await again.ping() != identity
    await again.close()


async def test_a_directory_that_can_not_be_used_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    backend = NetworkxBackend(tmp_path / "file" / "graphs", edge_types=EDGE_TYPES)
    with pytest.raises(GraphUnavailableError, match="can't be used"):
        await backend.open()
    await backend.close()
