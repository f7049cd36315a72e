"""What is asked of a stack, and what it has others do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memory_os.embedded.announce import make_printer
from memory_os.errors import StartupError


@dataclass(frozen=True, slots=True)
class StackOptions:
    """What the command line says.

    Args:
        home: Where the stores and all other files live.
        port: Port of API and console on the loopback address; 0 takes a free one.
        graph: Backend of the graph.
        workers: Worker processes; with networkx the API process holds the one worker.
        ready_file: Where to write the ready file; None writes none.
    """

    home: Path = Path(".memory-os")
    port: int = 8080
    graph: Literal["falkor", "networkx"] = "falkor"
    workers: int = 1
    ready_file: Path | None = None

    def check(self) -> None:
        """Refuse what can't be meant.

        Raises:
            StartupError: With the mend.
        """
        if self.workers < 1 or (self.graph == "networkx" and self.workers > 1):
            raise StartupError(
                "--workers must be at least 1, and exactly 1 with --graph networkx, whose graph lives in one process"
            )


@dataclass(frozen=True, slots=True)
class Credentials:
    """The tokens of an installation, which are shown once and therefore kept in `HOME/credentials.json` (0600)."""

    root_token: str = field(repr=False)
    tenant_id: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class StackSteps:
    """What the stack has others do.

    Args:
        migrate: Brings the schema to the newest revision; takes the superuser's URL.
        bootstrap: Makes sure of a root token, a tenant and its token; takes the superuser's URL and the credentials of
            the last run (None if they are lost, or if the database is new), gives them back if they still hold.
        sample: Loads the sample; takes the API's address and the tenant's token. A load that is cut short is repeated
            from the beginning at the next start.
        say: Takes one line of progress at a time.
    """

    migrate: Callable[[str], None]
    bootstrap: Callable[[str, Credentials | None], Credentials]
    sample: Callable[[str, str], None]
    say: Callable[[str], None] = field(default_factory=make_printer)


@dataclass(frozen=True, slots=True)
class Programs:
    """How the service's own processes are started, and where the API says that it lives and that it is ready."""

    api: tuple[str, ...] = (sys.executable, "-m", "memory_os", "api")
    worker: tuple[str, ...] = (sys.executable, "-m", "memory_os", "worker")
    live_path: str = "/livez"
    ready_path: str = "/readyz"
