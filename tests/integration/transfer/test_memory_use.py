"""An export and an import of fifty thousand memories take no more room than those of five hundred."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
from tests.fixtures.postgres import DatabaseUrls

LARGE, SMALL = 50_000, 500
ROOM_MB = 20
"""Megabytes that the large one may take more: buffers of a page, and what Python keeps of them."""

MEASURED = """
import resource, sys
from memory_os.cli import main
try:
    main()
finally:
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


def fill(urls: DatabaseUrls, count: int) -> UUID:
    tenant_id = uuid4()
    with psycopg.connect(urls.owner_url) as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (%s, 'large')", (tenant_id,))
        connection.execute(
            "INSERT INTO memories (tenant_id, id, label, layer, text, metadata, search) "
            "SELECT %s, gen_random_uuid(), 'Event', 'world', 'Crate ' || n || repeat(' of flour', 40), "
            "jsonb_build_object('n', n, 'more', repeat('x', 400)), '' FROM generate_series(1, %s) AS n",
            (tenant_id, count),
        )
        connection.execute("ANALYZE memories")
    return tenant_id


def peak_of(urls: DatabaseUrls, *arguments: str, cwd: Path) -> int:
    """Megabytes that a command has held at its most."""
    given = {"OWNER_DATABASE_URL": urls.owner_url, "DATABASE_URL": urls.app_url, "ENABLE_GRAPH_MEMORY": "true"}
    test = {"EMBEDDING_PROVIDER": "deterministic-for-tests", "MEMORY_OS_ALLOW_TEST_EMBEDDER": "1"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments],
        env={**os.environ, **given, **test},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("peak")]
    return int(line.split()[1])


def test_the_room_does_not_grow_with_the_tenant(database_urls: DatabaseUrls, tmp_path: Path) -> None:
    exported, imported = {}, {}
    for count in (SMALL, LARGE):
        source, target, path = fill(database_urls, count), fill(database_urls, 0), tmp_path / f"{count}.jsonl"
        wanted = ("export", "--tenant", str(source), "--to", str(path))
        exported[count] = peak_of(database_urls, *wanted, cwd=tmp_path)
        wanted = ("import", "--tenant", str(target), "--from", str(path))
        imported[count] = peak_of(database_urls, *wanted, cwd=tmp_path)
        with psycopg.connect(database_urls.owner_url) as connection:
            found = connection.execute("SELECT count(*) FROM memories WHERE tenant_id = %s", (target,)).fetchone()
            assert found == (count,)
    assert (tmp_path / f"{LARGE}.jsonl").stat().st_size > 60_000_000
    assert exported[LARGE] < exported[SMALL] + ROOM_MB, exported
    assert imported[LARGE] < imported[SMALL] + ROOM_MB, imported
