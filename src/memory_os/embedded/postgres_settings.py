"""The embedded Postgres' configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FILE_NAME = "memory_os.conf"
"""Written into the data folder at each start. `ALTER SYSTEM` (postgresql.auto.conf) is read later and wins."""

LAPTOP: Mapping[str, str] = {
    "listen_addresses": "",  # the socket only: no port, no password
    "max_connections": "200",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "random_page_cost": "1.1",  # laptops have SSDs
    "synchronous_commit": "on",
    "jit": "off",  # compiling costs more than these short queries take
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "wal_compression": "on",
    "autovacuum_naptime": "15s",  # the outbox is a queue: its dead rows should not wait a minute
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "log_checkpoints": "off",
    # Row values and statements stay out of the log: DETAIL lines quote rows, statements may hold text of memories.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}
"""Sizes for a machine that does other things too; about 300 MB resident under load."""

THROWAWAY: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "autovacuum_naptime": "1min",
    "io_method": "sync",  # no I/O worker processes: a cluster for each test process is enough already
}
"""For clusters that nobody misses after a power cut: tests and benchmarks of anything but durability."""


def render(settings: Mapping[str, str]) -> str:
    """A configuration file with one `name = 'value'` line each, in the order given."""
    lines = ["# Written by Memory OS at each start. To change a setting for good, use ALTER SYSTEM."]
    lines += [f"{name} = {quote(value)}" for name, value in settings.items()]
    return "\n".join(lines) + "\n"


def quote(value: str) -> str:
    r"""A value in the quoting of postgresql.conf: quotes doubled, backslashes too (`\b` would be read as an escape)."""
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def shared_memory(shm: Path = Path("/dev/shm"), *, least_bytes: int = 512 * 1024 * 1024) -> dict[str, str]:  # noqa: S108 - its size is asked, nothing is written
    """Where parallel queries share memory.

    Containers give /dev/shm 64 MB, in which a parallel index build dies ("could not resize shared memory segment");
    System V segments have no such limit.

    Args:
        shm: The file system that POSIX shared memory lives in on Linux.
        least_bytes: Below this size it is avoided.
    """
    import os  # noqa: PLC0415 - statvfs alone needs it

    if not shm.is_dir():
        return {}
    status = os.statvfs(shm)
    return {} if status.f_blocks * status.f_frsize >= least_bytes else {"dynamic_shared_memory_type": "sysv"}
