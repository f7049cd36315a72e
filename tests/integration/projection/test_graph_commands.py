"""`memory-os graph` as an operator runs it beside the stores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from tests.fixtures.service import TenantFactory
from tests.fixtures.worker import drain, dump

from memory_os.graph.port import GraphPatch
from memory_os.settings import Settings
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(service_settings: Settings, tmp_path: Path) -> Run:
    """Runs the command with the service's settings."""
    settings = service_settings
    assert settings.worker_database_url
    environment = {
        "PATH": os.environ["PATH"],
        "WORKER_DATABASE_URL": settings.worker_database_url.get_secret_value(),
        "ENABLE_GRAPH_MEMORY": "true",
        "GRAPH_BACKEND": settings.graph_backend,
        "GRAPH_DIR": str(settings.graph_dir),
        "FALKOR_HOST": settings.falkor_host,
        "FALKOR_PORT": str(settings.falkor_port),
        "GRAPH_PREFIX": settings.graph_prefix,
        "EMBEDDING_PROVIDER": "deterministic-for-tests",
        "MEMORY_OS_ALLOW_TEST_EMBEDDER": "1",
    }

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "memory_os", "graph", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return command


async def test_a_graph_is_compared_and_mended_from_the_shell(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, run: Run
) -> None:
    if worker.backend.keeps_writes:
        refused = run("verify")
        assert refused.returncode == 2
        assert "GET /v1/graph/verify" in refused.stderr
        return
    tenant = tenant_factory()
    body = {"text": "We met Ann Miller and Bob Stone.", "label": "Attribute"}
    assert (await client.post("/v1/memories", json=body, headers=tenant.headers())).status_code == 201
    await drain(worker)
    right = await dump(worker, tenant.tenant_id)
    equal = run("verify", "--tenant", str(tenant.tenant_id))
    assert (equal.returncode, "equal" in equal.stdout) == (0, True), equal.stderr
    await worker.backend.take_fence(tenant.tenant_id, "vandal")
    await worker.backend.apply(tenant.tenant_id, "vandal", GraphPatch(deleted_memories=list(right.memories)))
    wrong = await dump(worker, tenant.tenant_id)
    found = run("verify")
    assert found.returncode == 1
    assert f"memories {next(iter(right.memories))}: missing" in found.stdout
    tried = run("repair", "--tenant", str(tenant.tenant_id))
    assert (tried.returncode, "--apply" in tried.stderr) == (1, True)
    assert await dump(worker, tenant.tenant_id) == wrong
    mended = run("repair", "--tenant", str(tenant.tenant_id), "--apply")
    assert (mended.returncode, "1 repaired" in mended.stdout) == (0, True), mended.stdout + mended.stderr
    assert await dump(worker, tenant.tenant_id) == right
    unknown = run("verify", "--tenant", str(uuid4()))
    assert (unknown.returncode, "there is no tenant" in unknown.stderr) == (2, True)


async def test_a_rebuild_is_asked_for_from_the_shell(
    client: httpx.AsyncClient, tenant_factory: TenantFactory, worker: WorkerContext, run: Run
) -> None:
    if worker.backend.keeps_writes:
        return
    tenant = tenant_factory()
    asked = run("rebuild", "--tenant", str(tenant.tenant_id), "--no-follow")
    assert asked.returncode == 0, asked.stderr
    listed = await client.get("/v1/graph/rebuilds", headers=tenant.headers("operator"))
    assert [(job["status"], job["requested_by"]) for job in listed.json()["items"]] == [("pending", "command line")]
    again = run("rebuild", "--tenant", str(tenant.tenant_id))
    assert (again.returncode, "pending or running" in again.stderr) == (2, True)
