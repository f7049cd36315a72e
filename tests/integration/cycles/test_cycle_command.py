"""`memory-os cycle` on a real Postgres: a run made in one process, what it prints, and how it refuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import anyio.to_thread
import pytest
from tests.integration.cycles.conftest import DAY, Cycling
from typer.testing import CliRunner

from memory_os.cli import cli
from memory_os.cycles.commands import STOPPED, make_run
from memory_os.errors import StartupError
from memory_os.settings import Settings

pytestmark = pytest.mark.anyio

Make = Callable[..., Any]


@pytest.fixture
def make(cycling: Cycling, service_settings: Settings) -> Make:
    """Runs the command in a thread, as its own process would, and gives the exit code and what it told."""

    async def run(cycle: str = "nightly", tenant: str = "", **options: Any) -> tuple[int, list[str]]:
        lines: list[str] = []
        named = tenant or str(cycling.tenant.tenant_id)

        def call() -> int:
            return make_run(service_settings, cycle, named, tell=lines.append, **options)  # type: ignore[arg-type]

        return await anyio.to_thread.run_sync(call), lines

    return run


async def opportunity(cycling: Cycling) -> str:
    ident = await cycling.memory("The fair is open.", "Opportunity")
    cycling.put("memories", ident, valid_to=datetime.now(UTC) - DAY)
    return ident


def runs(cycling: Cycling) -> list[dict[str, Any]]:
    return cycling.rows("SELECT * FROM cycle_runs ORDER BY created_at, id")


async def test_a_run_is_made_and_told_by_rule(cycling: Cycling, make: Make) -> None:
    memory = await opportunity(cycling)
    code, lines = await make(dry_run=True)
    assert code == 0
    assert lines[0].endswith(": would be done")
    assert told(lines, "expire_opportunities") == 1
    assert cycling.rows("SELECT status FROM memories WHERE id = %s", memory) == [{"status": "active"}]
    code, lines = await make()
    (dry, run) = runs(cycling)
    assert (code, dry["dry_run"], run["status"], run["role"]) == (0, True, "done", "root")
    assert lines[0].startswith(f"nightly run {run['id']} for {run['period']} in tenant ")
    assert told(lines, "expire_opportunities") == told(lines, "all") == 1
    assert told(lines, "decay_edges") == 0
    assert cycling.rows("SELECT status FROM memories WHERE id = %s", memory) == [{"status": "expired"}]
    assert cycling.rows("SELECT action, role FROM audit_log WHERE target_id = %s", str(run["id"])) == [
        {"action": "cycle.run", "role": "root"}
    ]


def told(lines: list[str], rule: str) -> int:
    (line,) = [line for line in lines if line.split()[0] == rule]
    return int(line.split()[1])


async def test_a_period_that_is_done_is_refused_with_the_mend(cycling: Cycling, make: Make) -> None:
    await make()
    (run,) = runs(cycling)
    with pytest.raises(StartupError, match=f"undo it with POST /v1/cycles/{run['id']}/undo, or add --dry-run"):
        await make()
    code, _ = await make(moment=(datetime.now(UTC) - 2 * DAY).isoformat())
    assert code == 0


async def test_what_is_open_is_gone_on_with_in_its_order(cycling: Cycling, make: Make) -> None:
    before = await cycling.enter("monthly", datetime.now(UTC) - DAY)
    begun = await cycling.enter("nightly", datetime.now(UTC))
    code, lines = await make()
    assert code == 0
    assert f"nightly run {begun} " in lines[0]
    assert [(row["id"], row["status"]) for row in runs(cycling)] == [(before, "done"), (begun, "done")]


async def test_a_run_that_stops_keeps_its_place(cycling: Cycling, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("no such luck")

    await opportunity(cycling)
    for attempt in range(1, 6):
        with monkeypatch.context() as patched:
            patched.setattr("memory_os.cycles.running._note", fail)
            code, lines = await make()
        assert code == STOPPED
        assert lines[-1].startswith("stopped by ValueError (no such luck)")
        (run,) = runs(cycling)
        assert (run["attempts"], run["status"]) == (attempt, "failed" if attempt == 5 else "running")
    code, lines = await make()
    assert code == 0
    assert told(lines, "expire_opportunities") == 1


async def test_tenants_are_named_by_name_or_id(cycling: Cycling, make: Make) -> None:
    cycling.rows(
        "WITH x AS (UPDATE tenants SET name = 'Team %% North' WHERE tenant_id = %s RETURNING 1) SELECT 1",
        cycling.tenant.tenant_id,
    )
    assert (await make(tenant="Team % North"))[0] == 0
    with pytest.raises(StartupError, match="there is no tenant Team South: GET /v1/tenants lists them"):
        await make(tenant="Team South")
    with pytest.raises(StartupError, match="there is no tenant 00000000"):
        await make(tenant="00000000-0000-0000-0000-000000000000")
    cycling.rows(
        "WITH x AS (INSERT INTO tenants (tenant_id, name) SELECT gen_random_uuid(), name FROM tenants "
        "WHERE name LIKE 'Team%%' RETURNING 1) SELECT 1"
    )
    with pytest.raises(StartupError, match=f"several tenants .*{cycling.tenant.tenant_id}"):
        await make(tenant="Team % North")


@pytest.mark.parametrize("moment", ["yesterday", "2026-01-31", "2999-01-01T00:00:00Z", "1999-12-31T23:59:59Z"])
async def test_a_moment_that_can_not_be_is_refused(make: Make, moment: str) -> None:
    with pytest.raises(StartupError, match=r"^--moment must .*: give it as 2026-01-31T02:00:00\+01:00$"):
        await make(moment=moment)


async def test_without_a_database_it_says_the_mend(service_settings: Settings) -> None:
    settings = service_settings.model_copy(
        update={"worker_database_url": None, "database_url": _secret("postgresql://nobody@127.0.0.1:1/none")}
    )
    with pytest.raises(StartupError, match="check DATABASE_URL"):
        await anyio.to_thread.run_sync(lambda: make_run(settings, "nightly", "x"))


def _secret(url: str) -> Any:
    from pydantic import SecretStr  # noqa: PLC0415 - for one test

    return SecretStr(url)


async def test_the_help_shows_an_example() -> None:
    shown = CliRunner().invoke(cli, ["cycle", "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 0
    assert 'Example: memory-os cycle nightly --tenant "Team North" --dry-run' in " ".join(shown.output.split())
    assert CliRunner().invoke(cli, ["cycle", "daily", "--tenant", "x"]).exit_code == 2
