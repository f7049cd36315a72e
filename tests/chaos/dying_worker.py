"""Runs the real worker with a trap at every point of its work: armed, one kills the process there, or freezes it.

A program. The product has no hooks: its methods are wrapped from here before the worker starts. `TRAP_FILE` names a
file that need not exist; once a test has written a `Trap` to it as JSON, the worker dies at that point. Until then it
works as any other. `TRAP_CONSTANTS` sets constants of its modules, for pages and waits that fit into a test.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from redis.asyncio.connection import AbstractConnection

from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import QUERY, FalkorServer, Watched
from memory_os.graph.falkor_writer import FalkorWriter
from memory_os.outbox.queue import Queue
from memory_os.projection import projector as projection
from memory_os.projection.projector import Projector
from memory_os.projection.rebuilder import Rebuilder
from memory_os.settings import load_settings
from memory_os.storage.database import Database, Transaction
from memory_os_workers import projector as actor
from memory_os_workers.process import run_worker

Wrapped = Callable[..., Awaitable[Any]]
Matches = Callable[[tuple[Any, ...], Any], bool]
"""Whether a call counts, by its arguments and its result (None before it has one)."""


@dataclass(frozen=True, slots=True)
class Trap:
    """Where a worker dies.

    Attributes:
        point: The name that a wrapper below gives to `reach`.
        signal: SIGKILL or SIGSTOP, by its number.
        tenant: Whose events or rebuild are in hand then; None for what belongs to no tenant.
        aggregate: One that the batch in hand must name; None for any batch.
        nth: How often the point must have been reached, once the rest holds.
    """

    point: str
    signal: int
    tenant: str | None = None
    aggregate: str | None = None
    nth: int = 1


@dataclass(frozen=True, slots=True)
class InHand:
    """What the running task is at: a tenant, and the aggregates of its batch."""

    tenant: str
    aggregates: frozenset[str] = frozenset()


_in_hand: ContextVar[InHand | None] = ContextVar("in_hand", default=None)
_sending: ContextVar[bool] = ContextVar("sending", default=False)
_pruned: ContextVar[bool] = ContextVar("pruned", default=False)
_reached: dict[str, int] = {}


def _trap_file() -> Path:
    return Path(os.environ["TRAP_FILE"])


def mark_of(trap_file: Path) -> Path:
    """The file that a worker leaves a point's name in, just before it dies there."""
    return trap_file.with_suffix(".mark")


def is_armed(point: str) -> Trap | None:
    """The trap at a point, if it is armed for what the task has in hand."""
    try:
        trap = Trap(**json.loads(_trap_file().read_bytes()))
    except FileNotFoundError:
        return None
    held = _in_hand.get()
    if trap.point != point or trap.tenant != (held and held.tenant):
        return None
    return trap if trap.aggregate is None or (held and trap.aggregate in held.aggregates) else None


def reach(point: str) -> None:
    """Die here if the trap says so."""
    if (trap := is_armed(point)) is None:
        return
    _reached[point] = _reached.get(point, 0) + 1
    if _reached[point] == trap.nth:
        _trap_file().unlink()  # it closes once: whoever comes next, or wakes up, works on
        mark_of(_trap_file()).write_text(point)
        os.kill(os.getpid(), trap.signal)


# --- wrapping


def _wrap(owner: Any, name: str, around: Callable[[Wrapped], Wrapped]) -> None:
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(around(original)))


def _before(owner: Any, name: str, point: str, matches: Matches = lambda _, __: True) -> None:
    def around(original: Wrapped) -> Wrapped:
        async def wrapped(*arguments: Any, **named: Any) -> Any:
            if matches(arguments, None):
                reach(point)
            return await original(*arguments, **named)

        return wrapped

    _wrap(owner, name, around)


def _after(owner: Any, name: str, point: str, matches: Matches = lambda _, __: True) -> None:
    def around(original: Wrapped) -> Wrapped:
        async def wrapped(*arguments: Any, **named: Any) -> Any:
            result = await original(*arguments, **named)
            if matches(arguments, result):
                reach(point)
            return result

        return wrapped

    _wrap(owner, name, around)


def _track(owner: Any, name: str, held: Callable[..., InHand]) -> None:
    """Note what a call has in hand, from its arguments."""

    def around(original: Wrapped) -> Wrapped:
        async def wrapped(*arguments: Any, **named: Any) -> Any:
            token = _in_hand.set(held(*arguments))
            try:
                return await original(*arguments, **named)
            finally:
                _in_hand.reset(token)

        return wrapped

    _wrap(owner, name, around)


def _batch(tenant_id: object, events: Iterable[Any]) -> InHand:
    return InHand(str(tenant_id), frozenset(str(event.aggregate_id) for event in events))


def _runs(statement: str) -> Matches:
    """Whether a hand-tuned statement is run, and has answered rows (where it has run)."""
    return lambda arguments, result: arguments[1] == statement and result != []


# --- the points


def _trap_claims() -> None:
    def around_statement(original: Wrapped) -> Wrapped:
        async def wrapped(tx: Any, name: str, parameters: Mapping[str, Any] | None = None) -> Any:
            rows = await original(tx, name, parameters)
            if name == "claim_events" and rows:
                aggregates = frozenset(str(row["aggregate_id"]) for row in rows)
                _in_hand.set(InHand(str((parameters or {})["tenant_id"]), aggregates))
                reach("mid_claim")
            return rows

        return wrapped

    _wrap(Transaction, "hot", around_statement)
    _after(Queue, "claim", "after_claim", lambda _, events: bool(events))


def _trap_work() -> None:
    _after(Projector, "load", "after_read")
    _after(projection, "_patch", "mid_derive")
    _after(Projector, "derive", "after_derive")
    _after(FalkorServer, "write", "mid_index", lambda given, _: given[2].startswith("CREATE INDEX"))
    _before(Watched, "commit", "mid_write", lambda given, _: given[1][0][0] == QUERY)
    _trap_sending()
    _after(FalkorWriter, "write", "after_write")


def _trap_sending() -> None:
    """Die between request and reply: when every byte of the EXEC has gone to the kernel."""

    def around_commit(original: Wrapped) -> Wrapped:
        async def wrapped(*arguments: Any) -> Any:
            token = _sending.set(True)
            try:
                return await original(*arguments)
            finally:
                _sending.reset(token)

        return wrapped

    def around_send(original: Wrapped) -> Wrapped:
        async def wrapped(connection: Any, *arguments: Any, **named: Any) -> None:
            await original(connection, *arguments, **named)
            if _sending.get() and is_armed("sent_write"):
                while connection._writer.transport.get_write_buffer_size():  # noqa: ASYNC110 - no event tells of it
                    await asyncio.sleep(0)
                reach("sent_write")

        return wrapped

    _wrap(Watched, "commit", around_commit)
    _wrap(AbstractConnection, "send_packed_command", around_send)


def _trap_acks() -> None:
    _before(Queue, "finish", "before_ack")
    _after(Transaction, "hot", "mid_ack", _runs("finish_events"))
    _after(Queue, "finish", "after_ack")


def _trap_renewal() -> None:
    """Die while the lease is renewed: the work is held up for that, since it is done before a renewal is due."""

    def hold_up(original: Wrapped) -> Wrapped:
        async def wrapped(*arguments: Any) -> Any:
            if is_armed("mid_renewal"):
                await asyncio.Event().wait()
            return await original(*arguments)

        return wrapped

    _wrap(FalkorWriter, "write", hold_up)
    _after(Transaction, "hot", "mid_renewal", _runs("renew_lease"))


def _trap_rebuild() -> None:
    _after(FalkorBackend, "load", "mid_rebuild")
    _before(FalkorBackend, "finish_rebuild", "before_rename")
    _after(FalkorBackend, "finish_rebuild", "after_rename")


def _trap_pruning() -> None:
    """Die when the first batch of old events is gone for good."""

    def around_statement(original: Wrapped) -> Wrapped:
        async def wrapped(tx: Any, name: str, parameters: Mapping[str, Any] | None = None) -> Any:
            count = await original(tx, name, parameters)
            _pruned.set(name == "prune_events" and count > 0)
            return count

        return wrapped

    _wrap(Transaction, "touched", around_statement)
    _after(Database, "run", "mid_prune", lambda _, __: _pruned.get())


def _track_work() -> None:
    """Outermost, so that every trap inside knows what is in hand."""
    _track(Projector, "load", lambda _, lease, events: _batch(lease.tenant_id, events))
    _track(Projector, "derive", lambda _, lease, loaded: _batch(lease.tenant_id, loaded.events))
    _track(actor, "_write", lambda _, lease, events, __: _batch(lease.tenant_id, events))
    _track(Queue, "renew", lambda _, lease: InHand(str(lease.tenant_id)))
    _track(Rebuilder, "rebuild", lambda _, job, *__: InHand(str(job.tenant_id)))


def _set_constants(values: Mapping[str, Any]) -> None:
    for path, value in values.items():
        module, _, name = path.rpartition(".")
        found = import_module(module)
        assert hasattr(found, name), path
        setattr(found, name, value)


def main() -> None:
    """Run the worker."""
    for trap in (_trap_claims, _trap_work, _trap_acks, _trap_renewal, _trap_rebuild, _trap_pruning, _track_work):
        trap()
    _set_constants(json.loads(os.environ.get("TRAP_CONSTANTS", "{}")))
    run_worker(load_settings())


if __name__ == "__main__":
    main()
