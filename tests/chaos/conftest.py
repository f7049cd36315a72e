"""A stack of real processes that tests may break, and single parts of it on stores of the test's own."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.chaos.processes import UpStack, end_all
from tests.chaos.rig import Rig
from tests.chaos.trapping import TrappedWorkers
from tests.fixtures.falkor import FalkorProcess, run_falkor
from tests.fixtures.postgres import DatabaseUrls, clone_database, make_open_directory

from memory_os.embedded.postgres import EmbeddedPostgres


@pytest.fixture
def seed() -> int:
    """Of everything that is chosen at random; `CHAOS_SEED` repeats a run."""
    chosen = int(os.environ.get("CHAOS_SEED", "") or random.randrange(2**32))
    print(f"CHAOS_SEED={chosen}")  # noqa: T201 - pytest shows it with a failure
    return chosen


@pytest.fixture(scope="session")
def stack_of_session() -> Iterator[UpStack]:
    """`memory-os up`, not started yet."""
    directory = make_open_directory("memory-os-chaos-")
    stack = UpStack(directory)
    yield stack
    if stack.up is not None:
        end_all([stack.up])
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def stack(stack_of_session: UpStack) -> Iterator[UpStack]:
    """`memory-os up` with two workers, all of it running. A test may end any part: the next one finds it whole."""
    stack_of_session.ensure()
    stack_of_session.new_errors()  # those of a test before are that one's
    yield stack_of_session
    stack_of_session.settle()


@pytest.fixture
def falkor() -> Iterator[FalkorProcess]:
    """A FalkorDB that keeps its data, as the product's own does."""
    with run_falkor("--appendonly", "yes", "--appendfsync", "always") as server:
        yield server
        with suppress(AssertionError):
            server.send_signal(signal.SIGCONT)  # a frozen one would not hear that it shall stop


@pytest.fixture
def rig(tmp_path: Path, database_urls: DatabaseUrls, falkor: FalkorProcess) -> Iterator[Rig]:
    """An API without workers yet."""
    made = Rig(tmp_path, database_urls, falkor)
    try:
        made.start_api()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def workers(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[TrappedWorkers]:
    """Workers that die where a test wants, on stores that nobody touches."""
    directory = make_open_directory("memory-os-trapped-")
    with run_falkor() as falkor:
        for database in clone_database(postgres_server, template_database):
            made = Rig(directory, database, falkor)
            try:
                made.start_api()
                yield TrappedWorkers(made, directory)
            finally:
                made.close()
    shutil.rmtree(directory, ignore_errors=True)
