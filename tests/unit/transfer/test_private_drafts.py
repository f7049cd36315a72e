"""Files of commands: private, in their place once they are whole, and gone when they are not."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from memory_os.errors import StartupError
from memory_os.transfer.files import reading, writing


def test_a_whole_file_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    with writing(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_torn_one_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def tear() -> None:
        with writing(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tear()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_not_there_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"absent can't be read \(No such file"), reading(tmp_path / "absent"):
        pass
    with pytest.raises(StartupError, match="can't be written"), writing(tmp_path / "absent" / "file"):
        pass
