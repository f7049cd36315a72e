from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
from tests.fixtures.waiting import wait_for

from memory_os.embedded.falkor import EmbeddedFalkor
from memory_os.embedded.falkor_programs import find_module
from memory_os.embedded.falkor_settings import MODULE
from memory_os.errors import StartupError


@pytest.fixture
def falkor(directory: Path) -> Iterator[EmbeddedFalkor]:
    server = EmbeddedFalkor(directory / "home")
    yield server
    server.stop()


def query(url: str, text: str, command: str = "GRAPH.QUERY") -> list[list[object]]:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        answer = client.execute_command(command, "g", text)
        return answer[1] if len(answer) > 1 else []


def test_it_is_a_graph_server_behind_a_password_on_the_loopback_address(falkor: EmbeddedFalkor) -> None:
    url = falkor.start()

    assert url == f"redis://:{falkor.password}@127.0.0.1:{falkor.port}"
    assert query(url, "RETURN 1") == [[1]]
    with redis.Redis(port=falkor.port) as stranger, pytest.raises(redis.exceptions.AuthenticationError):
        stranger.ping()
    assert falkor.pid is not None
    listening = [
        c.laddr.ip for c in psutil.Process(falkor.pid).net_connections("inet") if c.status == psutil.CONN_LISTEN
    ]
    assert listening == ["127.0.0.1"]


def test_the_configuration_is_in_force(falkor: EmbeddedFalkor) -> None:
    with redis.Redis.from_url(falkor.start(), decode_responses=True) as client:
        module = dict(client.execute_command("GRAPH.CONFIG", "GET", "*"))
        server = client.config_get("appendonly", "appendfsync", "maxmemory-policy", "maxmemory", "save")

    expected = {name: False if value == "no" else value for name, value in MODULE.items()}
    assert {name: module[name] for name in MODULE} == expected
    assert server["appendonly"] == "yes"
    assert server["appendfsync"] == "everysec"
    assert server["maxmemory-policy"] == "noeviction"
    assert int(server["maxmemory"]) > 0
    assert server["save"] == ""


def test_the_password_is_in_private_files_alone(falkor: EmbeddedFalkor) -> None:
    falkor.start()

    assert falkor.pid is not None
    assert falkor.password not in " ".join(psutil.Process(falkor.pid).cmdline())
    for name in ("redis.conf", "password"):
        path = falkor.home / "falkor" / name
        assert falkor.password in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((falkor.home / "falkor").stat().st_mode) == 0o700


def test_acknowledged_writes_survive_a_kill_and_address_and_password_stay(falkor: EmbeddedFalkor) -> None:
    url = falkor.start()
    query(url, "UNWIND range(1, 500) AS i CREATE (:Memory {id: i})")
    assert falkor.pid is not None
    os.kill(falkor.pid, signal.SIGKILL)
    wait_for(lambda: falkor.pid is None)
    falkor.stop()

    assert falkor.start() == url
    assert query(url, "MATCH (m:Memory) RETURN count(m)", "GRAPH.RO_QUERY") == [[500]]


def test_a_port_that_somebody_else_took_is_replaced(falkor: EmbeddedFalkor) -> None:
    falkor.start()
    before = falkor.port
    falkor.stop()
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", before))
        thief.listen()
        falkor.start()
        assert falkor.port != before
    after = falkor.port
    falkor.stop()
    falkor.start()
    assert falkor.port == after


def test_a_frozen_server_is_silent_and_a_loading_or_idle_one_is_not(falkor: EmbeddedFalkor) -> None:
    falkor.start()
    assert falkor.responsive()
    assert falkor.pid is not None
    os.kill(falkor.pid, signal.SIGSTOP)

    assert not falkor.responsive()

    os.kill(falkor.pid, signal.SIGCONT)
    assert wait_for(falkor.responsive)


def test_a_server_that_a_crashed_run_left_running_is_replaced(falkor: EmbeddedFalkor, directory: Path) -> None:
    crashed = EmbeddedFalkor(directory / "home")
    url = crashed.start()
    query(url, "CREATE (:Memory {id: 1})")
    crashed.release()  # the lock is all that a crash lets go of

    assert falkor.start() == url
    assert crashed.pid is None
    assert query(url, "MATCH (m:Memory) RETURN m.id") == [[1]]


def test_data_in_use_are_refused(falkor: EmbeddedFalkor, directory: Path) -> None:
    falkor.start()

    with pytest.raises(StartupError, match="another process runs FalkorDB"):
        EmbeddedFalkor(directory / "home").start()
    assert falkor.pid is not None


def test_data_that_cannot_be_loaded_are_set_aside(falkor: EmbeddedFalkor) -> None:
    url = falkor.start()
    query(url, "CREATE (:Memory {id: 1})")
    falkor.stop()
    data = falkor.home / "falkor/appendonlydir"
    increments = next(data.glob("*.incr.aof"))
    increments.write_bytes(b"*1\r\n$7\r\nNONSENSE" + increments.read_bytes())

    assert falkor.start() == url

    assert query(url, "MATCH (m:Memory) RETURN m.id") == []
    assert (falkor.home / "falkor/appendonlydir.unreadable" / increments.name).exists()


def test_a_module_that_misses_a_library_is_explained_with_the_mend(directory: Path) -> None:
    module = directory / "falkordb.so"
    # The real module, made to ask for a library that no machine has.
    module.write_bytes(find_module().read_bytes().replace(b"libgomp.so.1", b"libgomq.so.1"))
    module.chmod(0o755)
    server = EmbeddedFalkor(directory / "home", module=module)

    with pytest.raises(StartupError, match=r"libgomq\.so\.1.*libgomp1.*--graph networkx"):
        server.start()
    assert server.pid is None


def test_a_home_with_odd_characters_works(directory: Path) -> None:
    server = EmbeddedFalkor(directory / 'd\'été, 100% "new" \\ #1')
    try:
        url = server.start()
        query(url, "CREATE (:Memory {id: 1})")
        server.stop()
        assert query(server.start(), "MATCH (m:Memory) RETURN m.id") == [[1]]
    finally:
        server.stop()
