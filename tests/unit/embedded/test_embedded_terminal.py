from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
import time

import pytest

from memory_os.embedded.announce import EXAMPLE_MEMORY, curl, describe, make_printer
from memory_os.embedded.options import Credentials, StackOptions
from memory_os.embedded.ready import ReadyFile, StackPids
from memory_os.embedded.signals import StopRequested, StopSignals
from memory_os.embedded.stack import StackSteps, run_stack
from memory_os.errors import StartupError

READY = ReadyFile(
    api="http://127.0.0.1:8080",
    console="http://127.0.0.1:8080/console",
    root_token="mos_root_secret",
    tenant_id="0190",
    token="mos_tenant_secret",
    database_url="postgresql://memory_os_app@/memory_os?host=/s",
    graph_url="networkx:/h/graph",
    pids=StackPids(supervisor=1, postgres=2, falkor=None, api=3, workers=()),
)


def test_a_command_to_paste_carries_any_body_through_the_shell() -> None:
    body = {"text": 'it\'s "50 %" $HOME `id` \\ ü\n!'}
    words = shlex.split(curl(READY, "/v1/memories", body))

    assert words[:3] == ["curl", "-sS", "http://127.0.0.1:8080/v1/memories"]
    assert "Authorization: Bearer mos_tenant_secret" in words
    assert json.loads(words[words.index("-d") + 1]) == body
    # What a real shell makes of it.
    line = curl(READY, "/v1/memories", body).replace("curl", "printf '%s\\0'", 1)
    shell = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=True)
    assert shell.stdout.split("\0")[:-1] == words[1:]


def test_the_last_lines_name_everything_that_a_newcomer_needs() -> None:
    text = "\n".join(describe(READY, seconds=3.14, credentials="/h/credentials.json"))

    for part in (READY.api, READY.console, READY.tenant_id, READY.token, "3.1 s", "/v1/memories", "/v1/retrieve"):
        assert part in text
    assert EXAMPLE_MEMORY["label"] == "Decision"
    assert READY.root_token not in text  # the file is named instead: a terminal is looked at by many
    assert "/h/credentials.json" in text


def test_lines_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    line = "curl -d '[bold]" + "x" * 300 + "[/bold]'"
    make_printer()(line)

    assert capsys.readouterr().out == line + "\n"


def test_tokens_do_not_show_in_a_representation() -> None:
    assert "secret" not in repr(Credentials("root-secret", "t", "tenant-secret"))


@pytest.mark.parametrize(
    "options", [StackOptions(workers=0), StackOptions(graph="networkx", workers=2)], ids=["none", "two of networkx"]
)
def test_a_number_of_workers_that_cannot_be_is_refused(options: StackOptions) -> None:
    with pytest.raises(StartupError, match="--workers"):
        options.check()


def test_a_stack_outside_the_main_thread_is_refused() -> None:
    caught: list[BaseException] = []

    def run() -> None:
        try:
            run_stack(StackOptions(), StackSteps(lambda _: None, lambda *_: Credentials("", "", ""), lambda *_: None))
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])


# --- signals


def send(signum: signal.Signals) -> None:
    os.kill(os.getpid(), signum)


def test_a_request_is_only_noted_between_steps_and_ends_a_wait_at_once() -> None:
    with StopSignals() as signals:
        assert not signals.requested
        send(signal.SIGTERM)
        begun = time.monotonic()
        signals.wait(30)
        assert time.monotonic() - begun < 5
        assert signals.requests == 1


def test_a_request_cuts_an_interruptible_step_short_but_not_its_cleaning_up() -> None:
    cleaned = []

    def step() -> None:
        try:
            send(signal.SIGINT)
            pytest.fail("the step went on")
        finally:
            send(signal.SIGINT)
            cleaned.append(True)

    with StopSignals() as signals:
        with pytest.raises(StopRequested), signals.interruptible():
            step()
        assert signals.requests == 2
    assert cleaned == [True]


def test_an_earlier_request_ends_an_interruptible_step_before_it_begins() -> None:
    with StopSignals() as signals:
        send(signal.SIGINT)
        with pytest.raises(StopRequested), signals.interruptible():
            pytest.fail("the step began")


def test_the_end_of_a_child_ends_a_wait() -> None:
    with StopSignals() as signals:
        child = subprocess.Popen(["true"])
        begun = time.monotonic()
        signals.wait(30)
        assert time.monotonic() - begun < 5
        child.wait()


def test_handlers_are_put_back_and_an_ignored_hangup_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        with StopSignals() as signals:
            send(signal.SIGHUP)
            assert not signals.requested
        assert signal.getsignal(signal.SIGINT) is interrupt
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
