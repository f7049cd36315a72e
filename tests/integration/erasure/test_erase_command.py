"""`memory-os erase verify` as an operator runs it beside the stores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from tests.fixtures.acting import Actor
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.worker import drain

from memory_os.graph.port import EntityNode, GraphPatch
from memory_os.settings import Settings
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

WORD = "Zyxquvort"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def service_settings(service_settings: Settings, falkor_server: FalkorProcess, falkor_prefix: str) -> Settings:
    """Settings of a service whose graph can be reached from outside of it."""
    falkor = {"falkor_host": falkor_server.host, "falkor_port": falkor_server.port, "graph_prefix": falkor_prefix}
    return service_settings.model_copy(update={"graph_backend": "falkor", **falkor})


@pytest.fixture
def run(service_settings: Settings, database_urls: DatabaseUrls, tmp_path: Path) -> Run:
    """Runs the command with the service's settings; others by name."""
    settings = service_settings
    environment = {
        "PATH": os.environ["PATH"],
        "OWNER_DATABASE_URL": database_urls.owner_url,
        "ENABLE_GRAPH_MEMORY": "true",
        "GRAPH_BACKEND": "falkor",
        "FALKOR_HOST": settings.falkor_host,
        "FALKOR_PORT": str(settings.falkor_port),
        "GRAPH_PREFIX": settings.graph_prefix,
    }

    def command(*arguments: str, text: str | None = None, **others: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "memory_os", "erase", "verify", *arguments],
            cwd=tmp_path,
            env=environment | others,
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return command


async def test_what_is_left_is_found_wherever_it_is(
    actor: Actor, worker: WorkerContext, database_urls: DatabaseUrls, run: Run
) -> None:
    memory = await actor.remember(f"{WORD} Halde met Ann Miller.")
    await drain(worker)
    answer = await actor.client.post(f"/v1/memories/{memory['id']}/erase", headers=actor.tenant.headers("admin"))
    receipt, tenant = answer.json()["id"], str(actor.tenant.tenant_id)
    early = run("--receipt", receipt)
    assert (early.returncode, "still to be projected" in early.stdout) == (1, True), early.stdout + early.stderr
    await drain(worker)
    clean = run("--receipt", receipt, "--tenant", tenant, "--text", WORD.upper())
    assert clean.returncode == 0, clean.stdout + clean.stderr
    lines = clean.stdout.splitlines()
    assert "nothing is left" in lines[-1]
    with psycopg.connect(database_urls.owner_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (table,) in tables:
            part = table.rpartition("_")[2].isdigit()
            assert any(f"] {table}: " in line for line in lines) != part, table
        connection.execute("UPDATE tokens SET name = %s WHERE tenant_id = %s", (f"of {WORD}", tenant))
        connection.execute("CREATE TABLE elsewhere (tenant_id uuid, told jsonb)")
        told = f'{{"rows": ["{memory["id"]}"]}}'
        connection.execute("INSERT INTO elsewhere VALUES (%s, %s), (%s, '{}')", (tenant, told, uuid4()))
    await worker.backend.take_fence(actor.tenant.tenant_id, "vandal")
    node = EntityNode(str(uuid4()), f"Old {WORD}", "unknown", 1.0, declared=False)
    await worker.backend.apply(actor.tenant.tenant_id, "vandal", GraphPatch(entities=[node]))
    found = run("--receipt", receipt, "--text", "-", text=f"{WORD}\n")
    assert found.returncode == 1
    left = [line for line in found.stdout.splitlines() if line.startswith("LEFT")]
    assert [line.rpartition(": ")[2] for line in left] == [
        "1 rows, 1 in told",
        "5 rows, 5 in name",
        "1 rows, 1 in entities",
    ]


async def test_what_can_not_be_looked_into_is_no_proof(
    actor: Actor, worker: WorkerContext, database_urls: DatabaseUrls, run: Run
) -> None:
    memory = await actor.remember("One.")
    answer = await actor.client.post(f"/v1/memories/{memory['id']}/erase", headers=actor.tenant.headers("admin"))
    receipt = answer.json()["id"]
    await drain(worker)
    for arguments, others, told in (
        (("--receipt", str(uuid4())), {}, "there is no receipt"),
        (("--receipt", receipt, "--tenant", str(uuid4())), {}, "there is no receipt"),
        (("--receipt", receipt, "--text", " "), {}, "blank"),
        (("--receipt", receipt), {"GRAPH_BACKEND": "networkx"}, "lives in the API's process"),
        (("--receipt", receipt), {"FALKOR_PORT": "1"}, "the graph does not answer"),
        (("--receipt", receipt), {"OWNER_DATABASE_URL": database_urls.worker_url}, "OWNER_DATABASE_URL"),
        (("--receipt", receipt), {"OWNER_DATABASE_URL": database_urls.app_url}, "OWNER_DATABASE_URL"),
    ):
        refused = run(*arguments, **others)
        assert refused.returncode == 2, (told, refused.stdout, refused.stderr)
        assert told in refused.stderr
        assert "nothing is left" not in refused.stdout
    without = run("--receipt", receipt, ENABLE_GRAPH_MEMORY="false")
    assert (without.returncode, "graph memory is off" in without.stdout) == (0, True), without.stderr
