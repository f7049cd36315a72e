"""Files that hold secrets, and the folders around them."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; no reader sees half of it and only its owner can read it (mode 0600).

    Args:
        path: The file; its folder must exist.
        text: The whole new content.

    Raises:
        OSError: If the folder can't be written; the old file is untouched then.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        # The mode is given at creation: a chmod afterwards would leave a moment in which others can open the file.
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise


def make_directory(path: Path, mode: int = 0o700) -> Path:
    """Make a folder and its parents; a folder that exists keeps the mode that its owner gave it.

    Args:
        path: The folder.
        mode: Mode of the folder itself if it is new, whatever the umask; new parents get the umask's.

    Returns:
        The same path.
    """
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=True)
        path.chmod(mode)
    return path
