"""A real PgBouncer before a test's database, configured as `deploy/pgbouncer.ini` says."""

from __future__ import annotations

import configparser
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.fixtures.falkor import find_free_port
from tests.fixtures.postgres import DatabaseUrls, make_open_directory

from memory_os.embedded.postgres import APP_ROLE

DEPLOYED = Path(__file__).parents[2] / "deploy" / "pgbouncer.ini"
START_TIMEOUT = 10.0


def find_pgbouncer() -> str:
    """The program; Debian's package is installed where it is missing and may be. Fails the test otherwise."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin"
    if not shutil.which("pgbouncer", path=places) and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"DEBIAN_FRONTEND": "noninteractive", "PATH": places}
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "pgbouncer"]
        for command in (["apt-get", "update", "-qq"], install):  # a fresh machine has no lists of packages yet
            subprocess.run(command, env=quiet, check=False, capture_output=True)
    return shutil.which("pgbouncer", path=places) or pytest.fail("this test needs PgBouncer: install pgbouncer")


@contextmanager
def run_pgbouncer(urls: DatabaseUrls, *, connections: int) -> Iterator[str]:
    """A pooler for the API's role on a free port, with so many connections to Postgres; gives the URL to use."""
    program, port = find_pgbouncer(), find_free_port()
    directory = make_open_directory("memory-os-pooler-")
    target = conninfo_to_dict(urls.app_url)
    config = configparser.ConfigParser(interpolation=None)
    config.read(DEPLOYED)
    config["databases"] = {urls.name: f"host={target['host']} port={target.get('port', 5432)} dbname={urls.name}"}
    config["pgbouncer"].update(
        {
            "listen_port": str(port),
            "auth_type": "trust",  # as the test's server itself, which only its own machine reaches
            "auth_file": str(directory / "userlist.txt"),
            "default_pool_size": str(connections),
            "unix_socket_dir": "",
        }
    )
    (directory / "userlist.txt").write_text(f'"{APP_ROLE}" ""\n')
    with (directory / "pgbouncer.ini").open("w") as file:
        config.write(file)
    # It does not run as root: as the server's own user it reaches the server's socket.
    user = Path(str(target["host"])).stat().st_uid if os.geteuid() == 0 else None
    command = [program, str(directory / "pgbouncer.ini")]
    with subprocess.Popen(command, user=user, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            _wait(process, port)
            yield f"postgresql://{APP_ROLE}@127.0.0.1:{port}/{urls.name}"
        finally:
            process.terminate()
            process.wait(START_TIMEOUT)
            shutil.rmtree(directory, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    """Until it listens."""
    deadline = time.monotonic() + START_TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    process.kill()
    assert process.stdout
    pytest.fail(f"PgBouncer did not start: {process.stdout.read().decode()}")
