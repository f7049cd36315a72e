"""The four commands tell how they are used, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from memory_os.backup.homes import new_home, open_home
from memory_os.cli import cli
from memory_os.errors import StartupError


@pytest.mark.parametrize("command", ["export", "import", "backup", "restore"])
def test_each_shows_an_example(command: str) -> None:
    shown = CliRunner().invoke(cli, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 0
    assert f"Example: memory-os {command} --" in " ".join(shown.output.split())


def test_a_restore_needs_to_know_where_to(tmp_path: Path) -> None:
    for options in ([], ["--home", str(tmp_path), "--url", "postgresql://localhost/x"]):
        done = CliRunner().invoke(cli, ["restore", "--from", "x", *options])
        assert isinstance(done.exception, StartupError)
        assert str(done.exception).startswith("name either --home or --url")


def test_a_home_without_data_is_not_made_by_looking_at_it(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="holds no data: name the folder"), open_home(tmp_path / "absent"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_home_with_data_is_not_restored_into(tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_text("{}")
    fault = r"has data \(credentials.json\): choose an empty or new --home"
    with pytest.raises(StartupError, match=fault), new_home(tmp_path):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["credentials.json"]
