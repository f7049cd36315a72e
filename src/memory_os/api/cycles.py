"""`/v1/cycles`: runs of the cycles, what they did, undoing it, and when they are due."""

from __future__ import annotations

from typing import Annotated, Any, Final, get_args
from uuid import UUID

from litestar import Controller, Response, get, post, put
from litestar.params import FromPath, JSONBody, QueryParameter

from memory_os.admin.reach import ROOT
from memory_os.api.calls import IDEMPOTENCY_KEY, Answer, Call
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.checking import check_word
from memory_os.cycles.asking import get_schedule, put_schedule, request_run, resume_run, undo_one, undo_run
from memory_os.cycles.model import (
    CycleAction,
    CycleRun,
    CycleSchedule,
    RunRequest,
    ScheduleDraft,
    UndoneAction,
    UndoneRun,
)
from memory_os.cycles.planning import RunStatus
from memory_os.cycles.reading import RunFilter, get_run, list_actions, list_runs
from memory_os.domain.cycles.rules import CYCLES, RULES
from memory_os.domain.shapes import Cursor
from memory_os.errors import PermissionDeniedError
from memory_os.storage.pages import Page

OK = 200
ACCEPTED = 202
_SEE: Final = {"permission": ("review", "operate")}
_ADMIN: Final = {"permission": "admin"}


class CycleController(Controller):
    """Cycles tidy up, forget and propose. Their runs are told by ids and states, and can be undone."""

    path = "/v1/cycles"
    tags = ["cycles"]  # noqa: RUF012 - Litestar reads it from the class

    @post("/", operation_id="runCycle", opt=_ADMIN, status_code=ACCEPTED, summary="Ask for a run of a cycle")
    async def run(
        self, data: JSONBody[RunRequest], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[CycleRun]:
        """Enter a run that a worker makes; the answer is the run to follow.

        A period has one run: another is a 409 that names it, unless it was undone, or this one is a dry run.
        """

        async def work(tx: Any) -> Answer[CycleRun]:  # noqa: ANN401 - Transaction, which Litestar must not resolve
            return Answer(await request_run(tx, call.principal, data, call.request_id), ACCEPTED)

        return await call.write(work)

    @get("/", operation_id="listCycleRuns", opt=_SEE, summary="List runs, newest first")
    async def list_all(
        self,
        call: Call,
        cycle: Annotated[str | None, QueryParameter(schema_extra={"enum": list(CYCLES)})] = None,
        status: Annotated[str | None, QueryParameter(schema_extra={"enum": list(get_args(RunStatus))})] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[CycleRun]:
        """List the runs of the tenant's cycles, dry runs too."""
        _refuse_root(call)
        check_word("/cycle", cycle, CYCLES, noun="cycle")
        check_word("/status", status, get_args(RunStatus), noun="status")
        return await call.read(lambda tx: list_runs(tx, RunFilter(cycle, status), cursor, limit))

    @get("/schedule", operation_id="getCycleSchedule", opt=_SEE, summary="Read when the cycles are due")
    async def schedule(self, call: Call) -> CycleSchedule:
        """Read the times of the tenant's cycles, in its time zone, and when each is due next."""
        _refuse_root(call)
        return await call.read(get_schedule)

    @put("/schedule", operation_id="putCycleSchedule", opt=_ADMIN, summary="Say when the cycles are due")
    async def put_schedule(self, data: JSONBody[ScheduleDraft], call: Call) -> CycleSchedule:
        """Set the times of all cycles; one that the body leaves out runs at its usual time."""
        return await call.read(lambda tx: put_schedule(tx, call.principal, data, call.request_id))

    @get("/{run_id:uuid}", operation_id="getCycleRun", opt=_SEE, summary="Follow a run")
    async def get_one(self, run_id: FromPath[UUID], call: Call) -> CycleRun:
        """Read one run: where it stands, and how much it has done by rule."""
        _refuse_root(call)
        return await call.read(lambda tx: get_run(tx, run_id))

    @get("/{run_id:uuid}/actions", operation_id="listCycleActions", opt=_SEE, summary="List what a run did")
    async def actions(
        self,
        run_id: FromPath[UUID],
        call: Call,
        rule: Annotated[str | None, QueryParameter(schema_extra={"enum": list(RULES)})] = None,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[CycleAction]:
        """List what a run changed, or would change, in its order: ids and states, whoever may read the records."""
        _refuse_root(call)
        check_word("/rule", rule, RULES, noun="rule")
        return await call.read(lambda tx: list_actions(tx, run_id, rule, cursor, limit))

    @post("/{run_id:uuid}/resume", operation_id="resumeCycleRun", opt=_ADMIN, status_code=OK, summary="Resume a run")
    async def resume(
        self, run_id: FromPath[UUID], call: Call, idempotency_key: Annotated[str | None, IDEMPOTENCY_KEY] = None
    ) -> Response[CycleRun]:
        """Let a run that failed go on from where it stands."""

        async def work(tx: Any) -> Answer[CycleRun]:  # noqa: ANN401 - as above
            return Answer(await resume_run(tx, call.principal, run_id, call.request_id), OK)

        return await call.write(work)

    @post("/{run_id:uuid}/undo", operation_id="undoCycleRun", opt=_ADMIN, status_code=OK, summary="Undo a run")
    async def undo(self, run_id: FromPath[UUID], call: Call) -> UndoneRun:
        """Take back what a run did, from its end, a few hundred actions at a time.

        What has changed since stays, and is told. A call that was cut short is repeated: it goes on with what stands.
        """
        services = call.services
        return await undo_run(services.database, call.principal, services.outbox, run_id, call.request_id)

    @post(
        "/actions/{action_id:uuid}/undo",
        operation_id="undoCycleAction",
        opt=_ADMIN,
        status_code=OK,
        summary="Undo one action",
    )
    async def undo_action(self, action_id: FromPath[UUID], call: Call) -> UndoneAction:
        """Take back one change that a run made."""
        services = call.services
        return await undo_one(services.database, call.principal, services.outbox, action_id, call.request_id)


def _refuse_root(call: Call) -> None:
    """Runs are a tenant's own affair, and root, who operates the instance, belongs to none."""
    if call.principal.role == ROOT:
        raise PermissionDeniedError("the cycles of a tenant are read with a token of that tenant")
