"""What a writer gives, and what the settings may be wrong in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memory_os.domain.cycles.insights import Summary


class SummaryWriter(Protocol):
    """Puts what notes say together into a title and a few sentences."""

    async def write(self, notes: Sequence[str]) -> Summary | None:
        """A summary of notes, checked; None if there is none to be had, which is logged.

        It takes as long as a model takes: never ask inside a transaction.
        """

    async def close(self) -> None:
        """Drop the connections."""


class WriterError(Exception):
    """A writer can't answer, or its answer can't be used. The message holds no text and no secret."""


class WriterSettingsError(Exception):
    """The settings name no writer that can work.

    Attributes:
        setting: The environment variable to mend, such as `SUMMARY_URL`.
    """

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.setting = setting
