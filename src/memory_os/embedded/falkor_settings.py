"""The embedded FalkorDB's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

MODULE: Mapping[str, int | str] = {
    # Milliseconds. The default of a call that names none, and the most that one may name. Without them a call has no
    # bound; the official image's 1000 would silently end long projections. They fire late under load, so the client
    # keeps a socket time-out of its own.
    "TIMEOUT_DEFAULT": 10_000,
    "TIMEOUT_MAX": 120_000,
    # Above this many waiting calls the server refuses instead of queueing without end (it was reported to crash there).
    "MAX_QUEUED_QUERIES": 500,
    # No limit on rows: the module cuts a longer answer without a word, and a comparison of graphs would be wrong then.
    # The next line bounds an answer instead, with an error.
    "RESULTSET_SIZE": -1,
    # Bytes of one query at most.
    "QUERY_MEM_CAPACITY": 512 * 1024 * 1024,
    # Parsed queries that each graph keeps.
    "CACHE_SIZE": 50,
    # Nodes allocated ahead for each graph: tenants are many and mostly small. The module's default is 16384.
    "NODE_CREATION_BUFFER": 128,
    # No stream of recent queries with their parameters, which would outlive a deletion.
    "CMD_INFO": "no",
}


def render(*, directory: Path, port: int, password: str, module: Path, memory_bytes: int) -> str:
    """The configuration file; it holds the password, so it is written with mode 0600 and nothing is given in argv.

    Args:
        directory: The data folder.
        port: TCP port on the loopback address.
        password: What every client must send.
        module: The graph module.
        memory_bytes: Above this much data writes are refused. Nothing is ever evicted: an evicted key is a lost tenant.
    """
    arguments = " ".join(f"{name} {value}" for name, value in MODULE.items())
    lines = [
        "# Written by Memory OS at each start.",
        "bind 127.0.0.1",
        "protected-mode yes",
        f"port {port}",
        f"requirepass {quote(password)}",
        f"dir {quote(str(directory))}",
        "daemonize no",
        'logfile ""',
        'save ""',  # the append-only file holds everything, snapshots beside it would only cost
        "appendonly yes",
        "appendfsync everysec",
        "aof-load-truncated yes",
        f"maxmemory {memory_bytes}",
        "maxmemory-policy noeviction",
        "shutdown-timeout 5",
        f"loadmodule {quote(str(module))} {arguments}",
    ]
    return "\n".join(lines) + "\n"


def quote(value: str) -> str:
    """A value in double quotes as redis.conf reads them; every byte outside printable ASCII as an escape."""
    rendered = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\x{byte:02x}"  # noqa: PLR2004 - printable ASCII
        for byte in value.encode("utf-8", errors="surrogateescape")
    )
    return f'"{"".join(rendered)}"'
