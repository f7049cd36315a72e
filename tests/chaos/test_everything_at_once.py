"""Everything at once: clients write, four workers project, and whatever can go wrong does. Nothing may be missing.

`CHAOS_SEED` repeats an order of blows (not their moments), `CHAOS_SECONDS` says how long they are dealt, and
`CHAOS_REPORT` names a folder for logs and FalkorDB's files if the test fails.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.chaos.deployed import DeployedFalkor
from tests.chaos.disorder import Disorder
from tests.chaos.observing import Observer, differences
from tests.chaos.rig import Rig
from tests.chaos.roaming import Roamer, Told, check_told
from tests.chaos.writing import Load
from tests.fixtures.postgres import DatabaseUrls, make_open_directory
from tests.fixtures.waiting import wait_for

from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.embedded.postgres_settings import THROWAWAY
from memory_os.storage.migrate import upgrade

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(400)]

SECONDS = float(os.environ.get("CHAOS_SECONDS", "60"))
"""How long blows are dealt."""

SETTLED_S = 90.0
"""Seconds after the last blow in which every graph must be right again, without anybody's asking."""

CLIENTS, TENANTS = 4, 3

WITHOUT: frozenset[str] = frozenset()
"""Blows that are left out."""


@pytest.fixture
def postgres() -> Iterator[EmbeddedPostgres]:
    """A Postgres of this test's own, whose commits survive the end of its processes."""
    directory = make_open_directory("memory-os-chaos-pg-")
    server = EmbeddedPostgres(directory / "home", settings={**THROWAWAY, "synchronous_commit": "on"})
    try:
        server.start()
        upgrade(server.owner_url)
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def falkor() -> Iterator[DeployedFalkor]:
    """A FalkorDB as the product runs its own."""
    directory = make_open_directory("memory-os-chaos-falkor-")
    server = DeployedFalkor(directory)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def rig(tmp_path: Path, postgres: EmbeddedPostgres, falkor: DeployedFalkor) -> Iterator[Rig]:
    """An API without workers yet."""
    urls = postgres.urls
    made = Rig(tmp_path, DatabaseUrls("memory_os", urls.owner, urls.app, urls.worker), falkor)
    try:
        made.start_api()
        yield made
    finally:
        made.close()


def test_nothing_is_lost_or_left_over_whatever_happens(
    rig: Rig, postgres: EmbeddedPostgres, falkor: DeployedFalkor, seed: int
) -> None:
    tenants = [rig.seen, *(rig.new_tenant() for _ in range(TENANTS - 1))]
    clients = [
        Roamer(
            tenants[number % TENANTS].api, tenants[number % TENANTS].token, str(number), f"{seed}:{number}", pace=0.05
        )
        for number in range(CLIENTS)
    ]
    disorder = Disorder(rig, postgres, falkor, tenants, seed, without=WITHOUT)
    try:
        with ThreadPoolExecutor(CLIENTS) as pool:
            load = Load(clients, least=60, pool=pool)
            try:
                disorder.calm()
                disorder.deal(SECONDS, lambda: load.running)
                disorder.calm()
            finally:
                load.stop()
            load.finish()
        assert len(disorder.dealt) >= SECONDS / 6
        assert load.written.retried > 0
        for number, seen in enumerate(tenants):
            check_tenant(seen, [client.written for client in clients[number::TENANTS]])
        for seen, job in disorder.rebuilds:
            assert seen.ask("GET", f"/v1/graph/rebuilds/{job}").json()["status"] == "done"
        assert [line for line in rig.errors() if not tells_of_a_graph(line)] == []
    except BaseException:
        keep_evidence(rig, falkor, seed)
        raise
    finally:
        print(disorder.report())  # noqa: T201 - pytest shows it with a failure


def check_tenant(seen: Observer, parts: list[Told]) -> None:
    """Hold one tenant's rows, queue and graph against what its clients were told, and then against a rebuild."""
    told = Told()
    for part in parts:
        told.merge(part)
    assert differences(dict(seen.texts()), told.texts) == []  # nothing lost, nothing come back
    deadline = monotonic() + SETTLED_S
    wait_for(lambda: not outstanding(seen), seconds=SETTLED_S, what="an empty queue and no rebuild under way")
    grown: Any = None
    with suppress(AssertionError):
        wait_for(lambda: is_right(seen, told), seconds=max(1.0, deadline - monotonic()), what="the right graph")
    grown = seen.dump()
    check_told(grown, told)
    wait_for(lambda: not outstanding(seen), seconds=SETTLED_S, what="an empty queue and no rebuild under way")
    assert failures(seen) == []
    assert set(seen.queue()) == {"done"}
    seen.rebuild()
    assert differences(grown, seen.dump()) == []


def outstanding(seen: Observer) -> dict[str, int]:
    """How many events and rebuilds are still to be done."""
    waiting = {status: count for status, count in seen.queue().items() if status in ("pending", "leased")}
    jobs = seen.rows(
        "SELECT count(*) AS n FROM graph_rebuilds WHERE tenant_id = %(tenant)s AND status IN ('pending', 'running')"
    )
    return waiting | ({"rebuilds": jobs[0]["n"]} if jobs[0]["n"] else {})


def failures(seen: Observer) -> list[str]:
    """What events have failed at by themselves: nothing that is done to the infrastructure is an event's fault."""
    rows = seen.rows(
        "SELECT DISTINCT errors FROM outbox_events WHERE tenant_id = %(tenant)s AND errors <> '[]'::jsonb LIMIT 5"
    )
    return [f"{error['class']}: {error['message']} {error['traceback']}" for row in rows for error in row["errors"]]


def is_right(seen: Observer, told: Told) -> bool:
    """Whether the graph is what the clients were told."""
    try:
        check_told(seen.dump(), told)
    except AssertionError:
        return False
    return True


def tells_of_a_graph(line: str) -> bool:
    """Whether a line of a log tells that a graph was lost, as it must."""
    return line.startswith("{") and json.loads(line)["event"] in ("graph_not_reliable", "graph_differs")


def keep_evidence(rig: Rig, falkor: DeployedFalkor, seed: int) -> None:
    """Copy logs and FalkorDB's files to where `CHAOS_REPORT` says."""
    if report := os.environ.get("CHAOS_REPORT"):
        directory = Path(report) / f"{seed}"
        directory.mkdir(parents=True, exist_ok=True)
        for log in rig.logs():
            shutil.copy(log, directory)
        shutil.copytree(falkor.home, directory / "falkor", dirs_exist_ok=True)
