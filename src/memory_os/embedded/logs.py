"""Log files of child processes, bounded in size."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import BinaryIO

LIMIT_BYTES = 10 * 1024 * 1024
"""Size above which a log is moved aside; with the one older file kept, a child's logs stay below twice this."""


class LogFile:
    """The log of one child: `<name>.log`, and `<name>.log.1` which holds what came before.

    Args:
        path: The file; its folder must exist.
        limit: Size in bytes above which `trim` moves the content aside.
    """

    def __init__(self, path: Path, *, limit: int = LIMIT_BYTES) -> None:
        self.path = path
        self.limit = limit

    @property
    def size(self) -> int:
        """Bytes in the file now; 0 if there is none."""
        return self.path.stat().st_size if self.path.exists() else 0

    def rotate(self) -> None:
        """Begin an empty log; what was there becomes the older file. For when no child holds the file open."""
        if self.size:
            self.path.replace(self._older)

    def open(self) -> BinaryIO:
        """Open for appending, mode 0600. A child must append: that is what lets `trim` cut the file under it."""
        return os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0)

    def trim(self) -> bool:
        """Move the content aside if the file has grown over its limit, while the child goes on writing to it.

        Lines that are written between the copy and the cut are lost, which a log may be.

        Returns:
            Whether it was cut.
        """
        if self.size <= self.limit:
            return False
        shutil.copyfile(self.path, self._older)
        self._older.chmod(0o600)
        os.truncate(self.path, 0)
        return True

    def tail(self, *, lines: int = 15, since: int = 0) -> str:
        """The last lines, for an error message.

        Args:
            lines: How many at most.
            since: Byte offset before which nothing is shown, such as the size at a start.
        """
        if not self.path.exists():
            return ""
        with self.path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            # 400 bytes a line is generous for what servers write, and keeps a log without newlines out of memory.
            file.seek(max(min(since, end), end - lines * 400))
            text = file.read().decode("utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    @property
    def _older(self) -> Path:
        return self.path.with_name(self.path.name + ".1")
