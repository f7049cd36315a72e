from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from memory_os.embedded.logs import LogFile
from memory_os.embedded.private_files import make_directory, write_private
from memory_os.embedded.ready import ReadyFile, StackPids

READY = ReadyFile(
    api="http://127.0.0.1:8080",
    console="http://127.0.0.1:8080/console",
    root_token="mos_root",
    tenant_id="0190",
    token="mos_tenant",
    database_url="postgresql://memory_os_app@/memory_os?host=/s",
    graph_url="networkx:/h/graph",
    pids=StackPids(supervisor=1, postgres=2, falkor=None, api=3, workers=(4, 5)),
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_file_is_private_from_its_first_moment_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_private(tmp_path / "secret", "one")
    finally:
        os.umask(before)

    assert mode(tmp_path / "secret") == 0o600


def test_replacing_closes_a_file_that_was_open_to_all(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)

    write_private(path, "new")

    assert path.read_text() == "new"
    assert mode(path) == 0o600


def test_a_reader_sees_the_old_or_the_new_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = {"a" * 100_000, "b" * 100_000}
    write_private(path, min(contents))
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            for content in contents:
                write_private(path, content)

    writer = threading.Thread(target=rewrite)
    writer.start()
    seen = {path.read_text() for _ in range(200)}
    stop.set()
    writer.join()

    assert seen <= contents
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private(path, "old")

    with pytest.raises(UnicodeEncodeError):
        write_private(path, "\ud800")

    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_new_folder_gets_its_mode_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    old.chmod(0o750)

    assert mode(make_directory(old)) == 0o750
    assert mode(make_directory(tmp_path / "a/b")) == 0o700
    assert mode(make_directory(tmp_path / "c", 0o711)) == 0o711


def test_the_ready_file_is_private_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "run/ready.json"
    READY.write(path)

    assert ReadyFile.read(path) == READY
    assert mode(path) == 0o600


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"pids": {}}', '{"pids": {"workers": []}}'])
def test_something_else_is_no_ready_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ready.json"
    path.write_text(content)

    with pytest.raises(ValueError, match=r"."):
        ReadyFile.read(path)


def test_a_log_that_outgrows_its_limit_is_cut_under_its_writer(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "x.log", limit=10)
    with log.open() as writer:
        writer.write(b"0123456789")
        assert not log.trim()
        writer.write(b"old\n")
        assert log.trim()
        writer.write(b"new\n")

    assert log.path.read_bytes() == b"new\n"
    assert (tmp_path / "x.log.1").read_bytes() == b"0123456789old\n"
    assert mode(log.path) == mode(tmp_path / "x.log.1") == 0o600


def test_a_new_run_begins_a_new_log_and_keeps_the_last_one(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "x.log")
    log.rotate()
    for line in (b"first\n", b"second\n"):
        log.rotate()
        with log.open() as writer:
            writer.write(line)

    assert log.path.read_bytes() == b"second\n"
    assert (tmp_path / "x.log.1").read_bytes() == b"first\n"


def test_the_tail_is_bounded_and_begins_where_it_is_told(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "x.log")
    assert log.tail() == ""
    with log.open() as writer:
        writer.write(b"".join(b"%d\n" % number for number in range(1000)))
        offset = log.size
        writer.write(b"\xff after\n")

    assert log.tail(lines=2) == "999\n\N{REPLACEMENT CHARACTER} after"
    assert log.tail(since=offset) == "\N{REPLACEMENT CHARACTER} after"
    assert log.tail(since=10**9) == ""
