"""The ready file: where a running stack is and how to get in, for scripts and tests."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from memory_os.embedded.private_files import write_private


@dataclass(frozen=True, slots=True)
class StackPids:
    """Process ids of a stack. None, or a missing worker: it is being restarted, or this stack has no such process."""

    supervisor: int
    postgres: int | None
    falkor: int | None
    api: int | None
    workers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReadyFile:
    """Content of the ready file.

    `database_url` is the application role's, `graph_url` is `redis://:PASSWORD@127.0.0.1:PORT` or `networkx:FOLDER`.
    """

    api: str
    console: str
    root_token: str
    tenant_id: str
    token: str
    database_url: str
    graph_url: str
    pids: StackPids

    def write(self, path: Path) -> None:
        """Write it in one step, readable for its owner alone: it holds tokens and a password."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> ReadyFile:
        """Read it back.

        Raises:
            OSError: If there is none, so nothing is ready.
            ValueError: If it is no ready file.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            pids = content.pop("pids")
            return cls(**content, pids=StackPids(**{**pids, "workers": tuple(pids["workers"])}))
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} is no ready file of this version: {error}") from error
