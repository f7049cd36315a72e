"""`memory-os` refuses to start with exit code 2 and one line that says the mend, rather than serve in a wrong state."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from tests.fixtures.falkor import find_free_port
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.waiting import wait_for

from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.storage.migrate import downgrade
from memory_os.storage.revision import SCHEMA_REVISION

Environment = dict[str, str]


@pytest.fixture
def good(database_urls: DatabaseUrls, tmp_path: Path) -> Environment:
    """Settings that the API and a worker start with."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    return {
        **kept,
        "DATABASE_URL": database_urls.app_url,
        "WORKER_DATABASE_URL": database_urls.worker_url,
        "EMBEDDING_PROVIDER": "deterministic-for-tests",
        "MEMORY_OS_ALLOW_TEST_EMBEDDER": "1",
        "MEMORY_OS_HOME": str(tmp_path / "home"),
        "GRAPH_DIR": str(tmp_path / "graph"),
        "LOG_FORMAT": "json",
    }


def _start(environment: Environment, directory: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "memory_os", *arguments]
    return subprocess.Popen(
        command, env=environment, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _refusal(environment: Environment, directory: Path, *arguments: str) -> str:
    """The one line that a start is refused with."""
    process = _start(environment, directory, *arguments)
    try:
        output, error = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("it started")
    assert process.returncode == 2, error
    assert output == ""
    lines = error.strip().splitlines()
    assert len(lines) == 1, error
    assert lines[0].startswith("memory-os: ")
    return lines[0]


@pytest.fixture
def logins(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[None]:
    """Logins of the cluster that must not serve."""
    assert template_database  # the service's roles are there
    with psycopg.connect(postgres_server.url("postgres", "postgres"), autocommit=True) as connection:
        connection.execute("CREATE ROLE bypassing LOGIN BYPASSRLS")
        connection.execute("GRANT memory_os_app TO bypassing")
        connection.execute("CREATE ROLE stranger LOGIN")
    yield
    with psycopg.connect(postgres_server.url("postgres", "postgres"), autocommit=True) as connection:
        connection.execute("DROP ROLE bypassing")
        connection.execute("DROP ROLE stranger")


@pytest.mark.usefixtures("logins")
@pytest.mark.parametrize(
    ("login", "mend"),
    [
        ("postgres", "the login postgres is superuser or has BYPASSRLS"),
        ("bypassing", "connect as memory_os_app, or as a plain login that is a member of it"),
        ("stranger", "run GRANT memory_os_app TO stranger, or connect as memory_os_app"),
    ],
)
def test_a_login_that_policies_do_not_bind_or_that_may_nothing_is_refused(
    good: Environment,
    tmp_path: Path,
    postgres_server: EmbeddedPostgres,
    database_urls: DatabaseUrls,
    login: str,
    mend: str,
) -> None:
    url = postgres_server.url(login, database_urls.name)
    assert mend in _refusal({**good, "DATABASE_URL": url}, tmp_path, "api", "--port", "0")
    if login == "postgres":
        worker = {**good, "WORKER_DATABASE_URL": url, "ENABLE_GRAPH_MEMORY": "true", "GRAPH_BACKEND": "falkor"}
        assert "connect as memory_os_worker" in _refusal(worker, tmp_path, "worker")


def test_a_schema_that_is_not_at_head_is_refused(
    good: Environment, tmp_path: Path, database_urls: DatabaseUrls
) -> None:
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert "at revision 9999, this version needs" in _refusal(good, tmp_path, "api", "--port", "0")
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = %s", (SCHEMA_REVISION,))
    downgrade(database_urls.owner_url, "-1")
    assert "run `memory-os migrate`" in _refusal(good, tmp_path, "api", "--port", "0")
    downgrade(database_urls.owner_url, "base")
    assert "run `memory-os migrate`" in _refusal(good, tmp_path, "api", "--port", "0")


def test_a_database_without_a_schema_is_refused(
    good: Environment, tmp_path: Path, postgres_server: EmbeddedPostgres
) -> None:
    empty = {**good, "DATABASE_URL": postgres_server.url("memory_os_app", "template1")}
    assert "run `memory-os migrate`" in _refusal(empty, tmp_path, "api", "--port", "0")


@pytest.mark.parametrize(
    ("model", "dimension"), [("another-model", 768), ("deterministic-for-tests", 768), ("another-model", 384)]
)
def test_an_embedder_that_did_not_make_the_stored_vectors_is_refused(
    good: Environment, tmp_path: Path, database_urls: DatabaseUrls, model: str, dimension: int
) -> None:
    with psycopg.connect(database_urls.owner_url) as connection:
        connection.execute(
            "INSERT INTO embedding_models (model, dimension, current) VALUES (%s, %s, true)", (model, dimension)
        )
    line = _refusal(good, tmp_path, "api", "--port", "0")
    assert f"the stored vectors are of {model} ({dimension} dimensions)" in line
    assert "memory-os reembed" in line


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"DATABASE_URL": ""}, "DATABASE_URL is unset"),
        ({"DATABASE_URL": "postgresql://memory_os_app:hunter2@127.0.0.1:1/memory"}, "check DATABASE_URL"),
        ({"PORT": "http"}, "PORT: "),
        ({"DATABASE_POOL_SIZE": "0"}, "DATABASE_POOL_SIZE: "),
        ({"GRAPH_BACKEND": "neo4j"}, "GRAPH_BACKEND: "),
        ({"EMBEDDING_PROVIDER": "http"}, "EMBEDDING_URL"),
        ({"MEMORY_OS_ALLOW_TEST_EMBEDDER": ""}, "EMBEDDING_PROVIDER"),
    ],
)
def test_a_wrong_setting_is_named_and_no_secret_shown(
    good: Environment, tmp_path: Path, change: Environment, named: str
) -> None:
    line = _refusal({**good, **change}, tmp_path, "api", "--port", "0")
    assert named in line
    assert "hunter2" not in line


def test_a_setting_that_is_not_known_is_named(good: Environment, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ENABLE_GRAPH_MEMROY=true\n", encoding="utf-8")
    assert "ENABLE_GRAPH_MEMROY" in _refusal(good, tmp_path, "api", "--port", "0")


def test_a_graph_of_one_process_is_refused_to_another(good: Environment, tmp_path: Path) -> None:
    alone = {**good, "ENABLE_GRAPH_MEMORY": "true", "GRAPH_BACKEND": "networkx"}
    assert "memory-os api --with-worker" in _refusal(alone, tmp_path, "worker")
    assert "ENABLE_GRAPH_MEMORY=true" in _refusal(good, tmp_path, "api", "--port", "0", "--with-worker")


def test_a_port_in_use_is_refused_and_the_same_settings_serve_on_another(good: Environment, tmp_path: Path) -> None:
    port = find_free_port()
    process = _start(good, tmp_path, "api", "--port", str(port))
    try:
        wait_for(lambda: _answers(port), seconds=60, what="the API")
        assert "choose another --port" in _refusal(good, tmp_path, "api", "--port", str(port))
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0, log


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
