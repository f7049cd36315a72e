"""The virtual environment of the projects that benchmarks compare this one with: `.venv-bench`, made when missing."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
REQUIREMENTS = ROOT / "requirements" / "bench.txt"
HOME = ROOT / ".venv-bench"


def ensure_peers() -> Path:
    """The interpreter of the environment, with `requirements/bench.txt` installed; says so when that takes a minute."""
    mark = HOME / "installed.txt"
    python = HOME / "bin" / "python"
    if not mark.exists() or mark.read_text() != REQUIREMENTS.read_text():
        print(f"==> the compared projects are installed from PyPI into {HOME} (once)", file=sys.stderr)
        venv.create(HOME, with_pip=True, clear=True)
        (HOME / ".gitignore").write_text("*\n")
        subprocess.run([python, "-m", "pip", "install", "-qq", "-r", REQUIREMENTS], check=True)
        mark.write_text(REQUIREMENTS.read_text())
    return python


def versions(*packages: str) -> dict[str, str]:
    """The versions of packages as pinned."""
    pinned = dict(line.split("==") for line in REQUIREMENTS.read_text().splitlines() if "==" in line)
    return {package: pinned[package] for package in packages}
