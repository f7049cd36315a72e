from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import redis
from tests.fixtures.waiting import wait_for
from tests.integration.embedded.conftest import gone

from memory_os.embedded.child import Child, Command, clean_environment
from memory_os.embedded.falkor import EmbeddedFalkor
from memory_os.embedded.leftovers import RecordedProcess, RunRecord, end_processes
from memory_os.embedded.logs import LogFile
from memory_os.embedded.program import Program
from memory_os.embedded.signals import StopRequested, StopSignals
from memory_os.embedded.supervisor import Supervisor
from memory_os.errors import StartupError

WAITING = "import signal; signal.pause()"
DEAF = "import signal; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"


def command(code: str, stop_signals: tuple[signal.Signals, ...] = (signal.SIGTERM,)) -> Command:
    return Command((sys.executable, "-c", code), clean_environment(), stop_signals=stop_signals)


def program(directory: Path, name: str, code: str, *, stage: int = 3) -> Program:
    return Program(name, stage=stage, command=command(code), log=LogFile(directory / f"{name}.log"))


@pytest.fixture
def supervisor(directory: Path) -> Iterator[Supervisor]:
    with StopSignals() as signals:
        made = Supervisor(signals, RunRecord(directory / "run.json"), say=lambda _line: None)
        yield made
        made.stop()


class Told(Program):
    """A program that is ready when the test says so."""

    def __init__(self, directory: Path, name: str, code: str, answer: Callable[[], bool]) -> None:
        super().__init__(name, stage=3, command=command(code), log=LogFile(directory / f"{name}.log"))
        self._answer = answer

    def ready(self) -> bool:
        return self._answer()


def interrupt() -> bool:
    os.kill(os.getpid(), signal.SIGINT)
    return False


def watch_until(supervisor: Supervisor, condition: Callable[[], object]) -> None:
    """Let the supervisor watch until the condition holds, then interrupt it as Ctrl-C does."""

    def interrupt_then() -> None:
        try:
            wait_for(condition)
        finally:
            interrupt()

    thread = threading.Thread(target=interrupt_then)
    thread.start()
    supervisor.watch()
    thread.join()
    assert condition()


def test_what_ends_again_and_again_is_restarted_ever_more_slowly(directory: Path) -> None:
    said: list[str] = []
    with StopSignals() as signals:
        supervisor = Supervisor(signals, RunRecord(directory / "run.json"), say=said.append)
        # The first one waits to be killed, each later one dies by itself.
        marker = directory / "started"
        code = (
            f"import os, pathlib, signal; marker = pathlib.Path({str(marker)!r})\n"
            "if marker.exists(): os.kill(os.getpid(), 9)\n"
            "marker.touch(); signal.pause()"
        )
        service = Told(directory, "worker", code, lambda: True)
        supervisor.start(service)
        wait_for(marker.exists)
        service.child.kill()
        watch_until(supervisor, lambda: len([line for line in said if "restarting" in line]) >= 4)
        supervisor.stop()

    delays = [line.partition(" in ")[2].partition(" s")[0] for line in said if "restarting" in line]
    assert delays[:4] == ["0.2", "0.4", "0.8", "1.6"]
    assert "exit code -9" in said[0]


def test_a_frozen_graph_server_is_killed_and_started_anew(directory: Path) -> None:
    falkor = EmbeddedFalkor(directory / "home", patience=1.0)
    falkor.prepare()
    said: list[str] = []
    changed = threading.Event()
    with StopSignals() as signals:
        supervisor = Supervisor(signals, RunRecord(directory / "run.json"), say=said.append, on_change=changed.set)
        supervisor.start(falkor)
        frozen = falkor.pid
        assert frozen is not None
        with redis.Redis.from_url(falkor.url) as client:
            client.execute_command("GRAPH.QUERY", "g", "CREATE (:Memory)")
        os.kill(frozen, signal.SIGSTOP)
        watch_until(supervisor, changed.is_set)
        assert falkor.pid != frozen
        assert gone(frozen)
        with redis.Redis.from_url(falkor.url) as client:
            assert client.execute_command("GRAPH.RO_QUERY", "g", "MATCH (m:Memory) RETURN count(m)")[1] == [[1]]
        supervisor.stop()
    falkor.release()
    assert "did not answer for 1 s" in said[0]


def test_stages_end_in_reverse_and_a_stage_ends_together(directory: Path) -> None:
    order = directory / "order"
    noting = (
        "import signal, sys, threading\n"
        "stop = threading.Event()\n"
        "signal.signal(signal.SIGTERM, lambda *_: stop.set())\n"
        f"open({str(order)!r} + '-' + NAME, 'w').close()\n"
        "while not stop.wait(0.1): pass\n"
        f"open({str(order)!r}, 'a').write(NAME + '\\n')\n"
    )
    names = {"store": 0, "api": 2, "worker-1": 3, "worker-2": 3}
    with StopSignals() as signals:
        supervisor = Supervisor(signals, RunRecord(directory / "run.json"), say=lambda _line: None)
        supervisor.start(
            *(program(directory, name, f"NAME = {name!r}\n{noting}", stage=stage) for name, stage in names.items())
        )
        wait_for(lambda: all((directory / f"order-{name}").exists() for name in names))
        supervisor.stop()

    ended = order.read_text().split()
    assert set(ended[:2]) == {"worker-1", "worker-2"}
    assert ended[2:] == ["api", "store"]


def test_a_start_that_is_interrupted_raises_and_stop_ends_what_had_started(
    directory: Path, supervisor: Supervisor
) -> None:
    slow = Told(directory, "api", WAITING, interrupt)

    with pytest.raises(StopRequested):
        supervisor.start(slow)
    pid = slow.child.pid
    assert pid is not None
    supervisor.stop()
    assert gone(pid)


def test_a_service_that_is_never_ready_is_named(directory: Path, supervisor: Supervisor) -> None:
    slow = Told(directory, "api", WAITING, lambda: False)

    with pytest.raises(StartupError, match="not ready after 0 s: api"):
        supervisor.start(slow, timeout=0.2)


def test_the_record_names_every_process_and_goes_with_them(directory: Path, supervisor: Supervisor) -> None:
    one = program(directory, "worker-1", WAITING)
    supervisor.start(one)
    record = RunRecord(directory / "run.json")

    assert [(entry.name, entry.pid) for entry in record.read()] == [
        ("supervisor", os.getpid()),
        ("worker-1", one.child.pid),
    ]
    assert [entry.name for entry, _ in record.living()] == ["worker-1"]
    supervisor.stop()
    assert record.read() == []


def test_a_recorded_number_that_a_stranger_has_now_is_left_alone(directory: Path) -> None:
    record = RunRecord(directory / "run.json")
    stranger = psutil.Process(os.getppid())
    record.write([RecordedProcess("api", stranger.pid, stranger.create_time() - 3600)])

    assert record.living() == []


@pytest.mark.parametrize("content", ["", "{", "[1]", '[{"name": "api"}]', "null"])
def test_a_damaged_record_counts_as_none(directory: Path, content: str) -> None:
    (directory / "run.json").write_text(content)

    assert RunRecord(directory / "run.json").read() == []


# --- one child


def child(directory: Path, code: str, stop_signals: tuple[signal.Signals, ...] = (signal.SIGTERM,)) -> Child:
    made = Child("child", command(code, stop_signals), LogFile(directory / "child.log"))
    made.spawn()
    return made


def has_said(made: Child, word: str) -> None:
    wait_for(lambda: word in made.log.tail(), what=word)


def test_a_child_that_ignores_its_signal_is_killed_within_the_grace(directory: Path) -> None:
    deaf = child(directory, DEAF)
    has_said(deaf, "deaf")

    deaf.stop(grace=0.2)

    assert deaf.exit_code == -signal.SIGKILL


def test_sterner_signals_come_before_the_kill(directory: Path) -> None:
    code = (
        "import signal, sys\n"
        "signal.signal(2, signal.SIG_IGN); signal.signal(3, lambda *_: sys.exit(33)); print('on', flush=True)\n"
        "while True: signal.pause()"
    )
    polite = child(directory, code, stop_signals=(signal.SIGINT, signal.SIGQUIT))
    has_said(polite, "on")

    polite.stop(grace=0.2)

    assert polite.exit_code == 33


def test_what_a_child_leaves_in_its_group_ends_with_it(directory: Path) -> None:
    code = (
        "import subprocess, sys, signal\n"
        f"p = subprocess.Popen([sys.executable, '-c', {WAITING!r}])\n"
        "print(p.pid, flush=True)\n"
        "signal.pause()"
    )
    parent = child(directory, code)
    wait_for(parent.log.tail)
    grandchild = int(parent.log.tail())

    parent.stop()

    wait_for(lambda: gone(grandchild))


def test_a_child_can_be_started_again_and_its_log_goes_on(directory: Path) -> None:
    once = child(directory, "print('one line')")
    assert once.wait(10)
    once.spawn()
    assert once.wait(10)

    assert once.exit_code == 0
    assert once.log.tail() == "one line\none line"
    assert once.log.tail(since=once.log_start) == "one line"


def test_a_program_that_is_missing_is_named_with_the_mend(directory: Path) -> None:
    made = Child("api", Command(("/nowhere/at-all",), {}), LogFile(directory / "child.log"))

    with pytest.raises(StartupError, match="/nowhere/at-all can't be run here"):
        made.spawn()
    made.stop()


def test_a_child_hears_nothing_of_the_terminal(directory: Path) -> None:
    quiet = child(directory, WAITING)
    assert quiet.pid is not None
    assert os.getsid(quiet.pid) == quiet.pid != os.getsid(0)
    quiet.stop()


def test_strangers_processes_are_ended_even_if_they_are_frozen_or_deaf(directory: Path) -> None:
    frozen = child(directory, WAITING)
    deaf = child(directory, DEAF)
    has_said(deaf, "deaf")
    assert frozen.pid is not None
    assert deaf.pid is not None
    os.kill(frozen.pid, signal.SIGSTOP)

    end_processes([psutil.Process(frozen.pid), psutil.Process(deaf.pid)], grace=0.5)

    assert frozen.wait(5)
    assert deaf.wait(5)
