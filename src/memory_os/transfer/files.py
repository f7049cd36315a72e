"""Files that a command writes: private, beside their place until they are whole."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from memory_os.errors import StartupError

STREAM: Final = Path("-")
"""Standard input or output instead of a file."""


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """An empty file beside `path` (mode 0600) that takes its place when the block ends well, and is gone otherwise.

    Raises:
        StartupError: If the folder can't be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise StartupError(f"{path} can't be written ({error.strerror}): name a file in a folder of yours") from None
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Where to write the content of a file, or of standard output."""
    if path == STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with draft_of(path) as draft, draft.open("wb") as file:
        yield file


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Where to read the content of a file, or of standard input.

    Raises:
        StartupError: If there is no such file.
    """
    if path == STREAM:
        yield sys.stdin.buffer
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise StartupError(f"{path} can't be read ({error.strerror})") from None
    with file:
        yield file
