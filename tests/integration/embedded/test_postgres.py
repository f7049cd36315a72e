from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from tests.fixtures.waiting import wait_for
from tests.integration.embedded.conftest import gone

from memory_os.embedded.cluster import find_installation
from memory_os.embedded.placement import ServerUser, find_server_user, place_data, place_programs, run_as
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.embedded.postgres_settings import THROWAWAY
from memory_os.errors import StartupError


@pytest.fixture
def postgres(directory: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(directory / "home", settings=THROWAWAY, shelter=directory / "shelter")
    yield server
    server.stop()


def ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
        return row[0] if row else None


def test_it_is_postgres_18_with_pgvector_on_a_socket_alone(postgres: EmbeddedPostgres) -> None:
    urls = postgres.start()

    assert urls.owner == postgres.owner_url == postgres.url("postgres")
    assert urls.app.startswith("postgresql://memory_os_app@/memory_os?host=/")
    assert str(ask(urls.owner, "SHOW server_version")).startswith("18.")
    with psycopg.connect(urls.owner) as connection:
        connection.execute("CREATE EXTENSION vector")
        assert connection.execute("SELECT '[1,2]'::vector <-> '[1,4]'").fetchone() == (2.0,)
    assert postgres.pid is not None
    # net_connections covers the postmaster, which is who listens.
    assert not [c for c in psutil.Process(postgres.pid).net_connections("inet") if c.status == psutil.CONN_LISTEN]


def test_text_is_utf8_with_unicode_case_and_code_point_order(postgres: EmbeddedPostgres) -> None:
    url = postgres.start().owner

    assert ask(url, "SHOW server_encoding") == "UTF8"
    assert ask(url, "SELECT lower('ÅÉÑ')") == "åéñ"
    assert ask(url, "SELECT 'Z' < 'a'") is True
    assert ask(url, "SELECT to_tsvector('simple', 'Ærøskøbing smörgås')::text") == "'smörgås':2 'ærøskøbing':1"


def test_settings_are_in_force_and_alter_system_wins(postgres: EmbeddedPostgres) -> None:
    url = postgres.start().owner
    assert ask(url, "SHOW max_connections") == "200"
    assert ask(url, "SHOW jit") == "off"
    assert ask(url, "SHOW shared_buffers") == "64MB"  # the caller's, over the laptop's
    assert ask(url, "SHOW max_wal_size") == "512MB"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET work_mem = '5MB'")

    postgres.restart()

    assert ask(url, "SHOW work_mem") == "5MB"


def test_a_default_cluster_is_durable(directory: Path) -> None:
    server = EmbeddedPostgres(directory / "home")
    try:
        url = server.start().owner
        assert [ask(url, f"SHOW {name}") for name in ("fsync", "synchronous_commit", "full_page_writes")] == ["on"] * 3
        assert ask(url, "SHOW data_checksums") == "on"
        assert ask(url, "SHOW shared_buffers") == "256MB"
    finally:
        server.stop()


def test_data_survive_a_stop_and_the_url_stays(postgres: EmbeddedPostgres) -> None:
    first = postgres.start()
    made = [postgres.created]
    with psycopg.connect(first.owner) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    postgres.stop()
    assert postgres.pid is None

    second = postgres.start()

    made.append(postgres.created)
    assert made == [True, False]
    assert second == first
    assert ask(second.owner, "SELECT n FROM kept") == 7


def test_only_the_servers_user_and_root_reach_the_socket(postgres: EmbeddedPostgres) -> None:
    url = postgres.start().owner
    socket = Path(url.partition("host=")[2])
    user = find_server_user()

    assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    assert stat.S_IMODE((socket / ".s.PGSQL.5432").stat().st_mode) == 0o700
    assert socket.stat().st_uid == (user.uid if user else os.getuid())
    if user is not None:  # root can try it as somebody else
        psql = postgres.bin_dir / "psql"
        nobody = ServerUser("nobody", 65534, 65534)
        assert run_as(user, (str(psql), "-c", "SELECT 1", url)).returncode == 0
        refused = run_as(nobody, (str(psql), "-c", "SELECT 1", url))
        assert refused.returncode != 0
        assert "Permission denied" in refused.stderr


def test_rows_and_statements_stay_out_of_the_log(postgres: EmbeddedPostgres) -> None:
    url = postgres.start().owner
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE once (secret text PRIMARY KEY)")
        connection.execute("INSERT INTO once VALUES ('walnut-canary')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO once VALUES ('walnut-canary')")

    log = (postgres.home / "logs/postgres.log").read_text()
    assert "duplicate key" in log
    assert "walnut-canary" not in log
    assert stat.S_IMODE((postgres.home / "logs/postgres.log").stat().st_mode) == 0o600


def test_the_client_programs_dump_and_copy_the_cluster(postgres: EmbeddedPostgres, directory: Path) -> None:
    url = postgres.start().owner
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")

    dump = subprocess.run([postgres.bin_dir / "pg_dump", url], check=True, capture_output=True, text=True).stdout
    subprocess.run([postgres.bin_dir / "pg_basebackup", "-d", url, "-D", directory / "copy"], check=True)

    assert "CREATE TABLE public.kept" in dump
    assert (directory / "copy/PG_VERSION").read_text() == "18\n"
    assert (directory / "copy/memory_os.conf").exists()


def test_a_killed_master_with_a_busy_backend_is_recovered_from(directory: Path) -> None:
    postgres = EmbeddedPostgres(directory / "home")  # durable: an acknowledged row must be there afterwards
    try:
        kill_under_load(postgres)
    finally:
        postgres.stop()


def kill_under_load(postgres: EmbeddedPostgres) -> None:
    url = postgres.start().owner
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    # Busy in a loop that never looks for its master: it keeps the shared memory.
    client = subprocess.Popen(
        [postgres.bin_dir / "psql", url, "-c", "SELECT count(*) FROM generate_series(1, 2000000000)"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    query = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT count(*) FROM gen%'"
    backend = wait_for(lambda: ask(url, query), what="the busy backend")
    assert isinstance(backend, int)
    assert postgres.pid is not None
    os.kill(postgres.pid, signal.SIGKILL)
    wait_for(lambda: postgres.pid is None)
    assert not gone(backend)

    postgres.stop()
    again = postgres.start()

    assert client.wait(10) != 0
    assert gone(backend)
    assert ask(again.owner, "SELECT n FROM kept") == 7


def test_a_lock_file_whose_number_a_stranger_has_now_does_not_stop_it(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    postgres.stop()
    lock_file = postgres.data_dir / "postmaster.pid"
    # Our own parent: alive for sure, and no server of ours.
    lock_file.write_text(f"{os.getppid()}\n{postgres.data_dir}\n1700000000\n5432\n/tmp\n\n1 2\nready   \n")

    assert ask(postgres.start().owner, "SELECT 1") == 1
    assert psutil.pid_exists(os.getppid())


def test_a_server_that_a_crashed_run_left_running_is_replaced(postgres: EmbeddedPostgres, directory: Path) -> None:
    crashed = EmbeddedPostgres(directory / "home", settings=THROWAWAY)
    url = crashed.start().owner
    left = crashed.pid
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    crashed.release()  # the lock is all that a crash lets go of

    assert postgres.start().owner == url

    assert postgres.pid != left
    assert crashed.pid is None
    assert ask(url, "SELECT n FROM kept") == 7


def test_data_in_use_are_refused(postgres: EmbeddedPostgres, directory: Path) -> None:
    postgres.start()

    with pytest.raises(StartupError, match="another process runs Postgres"):
        EmbeddedPostgres(directory / "home").start()
    assert postgres.pid is not None


def test_starting_twice_keeps_the_running_server(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    pid = postgres.pid
    postgres.start()
    postgres.spawn()

    assert postgres.pid == pid


def test_half_a_cluster_is_thrown_away(postgres: EmbeddedPostgres, directory: Path) -> None:
    draft = directory / "home/.postgres.new"
    draft.mkdir(parents=True)
    (directory / "home").chmod(0o711)
    (draft / "PG_VERSION").write_text("18\n")

    assert ask(postgres.start().owner, "SELECT 1") == 1
    assert not draft.exists()


def test_another_major_version_is_refused_with_the_mend(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    postgres.stop()
    (postgres.data_dir / "PG_VERSION").write_text("16\n")

    with pytest.raises(StartupError, match=r"belongs to Postgres 16.*pg_dump"):
        postgres.start()


def test_a_start_that_fails_shows_the_log(directory: Path) -> None:
    server = EmbeddedPostgres(directory / "home", settings={**THROWAWAY, "shared_buffers": "1 walnut"})

    with pytest.raises(StartupError, match="shared_buffers"):
        server.start()
    assert server.pid is None


def test_a_home_with_a_long_path_gets_its_socket_elsewhere(directory: Path) -> None:
    home = directory / ("deep" * 20) / "home"
    home.parent.mkdir()
    home.parent.chmod(0o711)
    server = EmbeddedPostgres(home, settings=THROWAWAY)
    try:
        url = server.start().owner
        assert not url.partition("host=")[2].startswith(str(home))
        assert ask(url, "SELECT 1") == 1
        server.stop()
        assert server.start().owner == url
    finally:
        server.stop()
        shutil.rmtree(url.partition("host=")[2])


def test_a_home_with_odd_characters_works(directory: Path) -> None:
    home = directory / 'd\'été, 100% "new"'
    server = EmbeddedPostgres(home, settings=THROWAWAY)
    try:
        url = server.start().owner
        assert ask(url, "SELECT 1") == 1
    finally:
        server.stop()
        shutil.rmtree(url.partition("host=")[2])


def test_closed_folders_above_the_home_stay_closed(directory: Path) -> None:
    """As root the server's user can't pass, so the data goes to the shelter; otherwise the home itself serves."""
    closed = directory / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "home", settings=THROWAWAY, shelter=directory / "shelter")
    try:
        url = server.start().owner
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        server.stop()
        again = server.start().owner
        assert ask(again, "SELECT n FROM kept") == 7
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
        sheltered = server.data_dir.is_relative_to(directory / "shelter")
        assert sheltered == (os.geteuid() == 0)
        assert (closed / "home/postgres").resolve() == server.data_dir
    finally:
        server.stop()
        host = Path(url.partition("host=")[2])
        if not host.is_relative_to(closed):
            shutil.rmtree(host)


def test_data_that_became_unreachable_are_refused_with_the_mend(directory: Path) -> None:
    """Only root's servers run as somebody else; for everybody else the home is the place, reachable or not."""
    user = find_server_user()
    closed = directory / "closed"
    (closed / "postgres").mkdir(parents=True)
    closed.chmod(0o700)

    if user is None:
        assert place_data(closed / "postgres", user, shelter=directory / "shelter") == closed / "postgres"
    else:
        with pytest.raises(StartupError, match="chmod"):
            place_data(closed / "postgres", user, shelter=directory / "shelter")
    assert not (directory / "shelter").exists()


def test_programs_that_the_servers_user_cannot_reach_are_copied(directory: Path, postgres: EmbeddedPostgres) -> None:
    postgres.prepare()
    user = find_server_user()
    closed = directory / "closed"
    package = find_installation().parent
    for part in (package / "pginstall18", package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, closed / part.relative_to(package.parent), symlinks=True)
    root = closed / package.name / "pginstall18"
    closed.chmod(0o700)

    placed = place_programs(root, "postgres", user, shelter=directory / "shelter")

    assert placed.is_relative_to(directory / "shelter") == (user is not None)
    assert run_as(user, (str(placed / "bin/psql"), "--version")).stdout.startswith("psql (PostgreSQL) 18")
    assert place_programs(root, "postgres", user, shelter=directory / "shelter") == placed
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_a_program_that_does_not_run_here_is_named(directory: Path) -> None:
    (directory / "pg/bin").mkdir(parents=True)
    broken = directory / "pg/bin/postgres"
    broken.write_text("#!/bin/sh\necho 'libfoo.so: cannot open' >&2; exit 127\n")
    broken.chmod(0o755)
    (directory / "pg").chmod(0o755)

    with pytest.raises(StartupError, match="libfoo"):
        place_programs(directory / "pg", "postgres", find_server_user(), shelter=directory / "shelter")


def test_the_cluster_is_as_old_as_the_home(postgres: EmbeddedPostgres, directory: Path) -> None:
    """A database always comes with its cluster: nothing is left to make at the first connection."""
    postgres.prepare()

    assert postgres.created
    assert {path.name for path in (directory / "home").iterdir()} >= {"postgres", "logs", "socket"}
    assert postgres.pid is None
