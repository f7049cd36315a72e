"""Runs a stack with real stores, and fake programs and steps, as `memory-os up` would.

Usage: run_stack.py OPTIONS_JSON. Each step notes itself in HOME's sibling `steps.log`.
"""

from __future__ import annotations

import json
import secrets
import signal
import sys
from pathlib import Path

import psycopg

from memory_os.embedded.stack import Credentials, Programs, StackOptions, StackSteps, run_stack
from memory_os.errors import StartupError

HERE = Path(__file__).parent
given = json.loads(sys.argv[1])
home = Path(given["home"])
steps_log = home.parent / "steps.log"


def note(step: str) -> None:
    with steps_log.open("a", encoding="utf-8") as log:
        log.write(step + "\n")


def migrate(owner_url: str) -> None:
    note("migrate")
    if given.get("stall") == "migrate":
        signal.pause()
    with psycopg.connect(owner_url) as connection:
        for role in ("memory_os_app", "memory_os_worker"):
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")


def bootstrap(owner_url: str, previous: Credentials | None) -> Credentials:
    note("bootstrap anew" if previous is None else "bootstrap again")
    with psycopg.connect(owner_url) as connection:
        connection.execute("INSERT INTO kept VALUES (1)")
    return previous or Credentials(secrets.token_hex(8), secrets.token_hex(8), secrets.token_hex(8))


def sample(api_url: str, token: str) -> None:
    note("sample")
    if given.get("stall") == "sample":
        raise OSError("no sample today")
    assert api_url.startswith("http://127.0.0.1:")
    assert token


try:
    run_stack(
        StackOptions(
            home=home,
            port=given.get("port", 0),
            graph=given.get("graph", "falkor"),
            workers=given.get("workers", 1),
            ready_file=Path(given["ready_file"]),
        ),
        StackSteps(migrate=migrate, bootstrap=bootstrap, sample=sample),
        Programs(
            api=(sys.executable, *given.get("api", [str(HERE / "fake_api.py")])),
            worker=(sys.executable, str(HERE / "fake_worker.py"), *given.get("worker_arguments", [])),
        ),
    )
except StartupError as error:
    sys.exit(f"error: {error}")
