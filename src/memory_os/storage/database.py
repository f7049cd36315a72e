"""The database: one engine a process, and the unit of work that enters a tenant for the length of a transaction."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import UUID

from psycopg import AsyncClientCursor, AsyncConnection, errors
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from sqlalchemy import Executable, make_url
from sqlalchemy.engine import CursorResult, RowMapping
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection as SqlConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memory_os.domain.principal import Principal
from memory_os.storage.arrays import array_literal

T = TypeVar("T")

RETRIES = 5
"""How often a unit of work that lost a deadlock or a serialisation race is run again."""

_AWAY = ("08", "53", "57")
"""Classes of SQLSTATE that speak of the server and not of the statement: connection, resources, shutdown."""

_ENTER = (
    "SELECT set_config('role', %(db_role)s, true), set_config('memory_os.tenant_id', %(tenant)s, true), "
    "set_config('memory_os.role', %(role)s, true), set_config('memory_os.user_id', %(user)s, true), "
    "set_config('memory_os.groups', %(groups)s, true), "
    # A process that freezes inside a transaction must not keep its locks: nobody else could change those rows.
    "set_config('idle_in_transaction_session_timeout', '10s', true)"
)

STEWARD = "steward"
"""The role of the service itself in the policies; no token has it."""

_TAKE_ROLE = "SELECT set_config('memory_os.role', %(role)s, true)"

_BEGIN = {False: "BEGIN; ", True: "BEGIN ISOLATION LEVEL REPEATABLE READ; "}
"""By whether all statements see the rows as they are at the beginning."""

Plans = Literal["auto", "generic", "custom"]
"""How prepared statements are planned: as Postgres sees fit; once, whatever the values; or each time for its values.

A look-up by keys is the same plan for all values, but Postgres would plan it anew each time: it takes an array of
unknown length for ten, and a plan for three looks cheaper. Planning a union of seven tables with their policies takes
longer than running it (measured for what a pack shows: 9 ms instead of 1).
"""

_PLANS: dict[Plans, str] = {
    "auto": "",
    "generic": ", set_config('plan_cache_mode', 'force_generic_plan', true)",
    "custom": ", set_config('plan_cache_mode', 'force_custom_plan', true)",
}

_ENTER_DURABLE = _ENTER + ", set_config('lock_timeout', '15s', true)"
_ENTER_WITHOUT_WAITING = _ENTER + ", set_config('synchronous_commit', 'off', true)"


def driver_url(url: str) -> str:
    """A libpq URL (`postgresql://...`) as SQLAlchemy wants it for psycopg."""
    return make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


@cache
def hot_statement(name: str) -> bytes:
    """Text of `storage/sql/{name}.sql`: the statements that are tuned by hand stand one a file."""
    return (files("memory_os.storage") / "sql" / f"{name}.sql").read_bytes()


@dataclass(frozen=True, slots=True)
class Scope:
    """What a transaction enters: the database role and the tenant and principal that the policies read."""

    db_role: str
    tenant_id: UUID | None = None
    role: str = ""
    user_id: str | None = None
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, principal: Principal) -> Scope:
        """The scope of a request."""
        return cls("memory_os_app", principal.tenant_id, principal.role, principal.user_id, principal.groups)

    def parameters(self) -> dict[str, str]:
        """The values of the statement that enters this scope."""
        return {
            "db_role": self.db_role,
            "tenant": str(self.tenant_id) if self.tenant_id else "",
            "role": self.role,
            "user": self.user_id or "",
            "groups": "\x1f".join(self.groups),
        }


class Query(NamedTuple):
    """A hand-tuned statement with its parameters."""

    name: str
    parameters: Mapping[str, Any]


class Transaction:
    """One unit of work inside one tenant. Only `Database` begins and ends it.

    `run` takes SQLAlchemy Core statements; `hot` takes the hand-tuned statements of `storage/sql` straight to the
    driver, on the same connection.
    """

    def __init__(self, connection: SqlConnection, driver: AsyncConnection[Any], scope: Scope) -> None:
        self._connection = connection
        self._driver = driver
        self.scope = scope

    @property
    def tenant_id(self) -> UUID:
        """The tenant that this transaction has entered."""
        if self.scope.tenant_id is None:
            raise RuntimeError("this transaction has entered no tenant")
        return self.scope.tenant_id

    @asynccontextmanager
    async def as_steward(self) -> AsyncIterator[None]:
        """See and change all rows of the tenant until the end of the block, whoever may read them.

        For what the service has to do whoever asked for it: edges move with their memory, an erasure finds every copy.
        What is read in here must not be told to who asked, except for ids that were shown to them and for counts.
        """
        await self._driver.execute(_TAKE_ROLE, {"role": STEWARD})
        try:
            yield
        finally:
            if self._driver.info.transaction_status == TransactionStatus.INTRANS:
                await self._driver.execute(_TAKE_ROLE, {"role": self.scope.role})

    async def run(self, statement: Executable, parameters: Mapping[str, Any] | None = None) -> CursorResult[Any]:
        """Execute a Core statement."""
        return await self._connection.execute(statement, parameters)

    async def rows(self, statement: Executable) -> Sequence[RowMapping]:
        """All rows of a Core statement, as mappings."""
        return (await self._connection.execute(statement)).mappings().all()

    async def row(self, statement: Executable) -> RowMapping | None:
        """The first row of a Core statement, or None."""
        return (await self._connection.execute(statement)).mappings().first()

    async def pages(self, statement: str, parameters: Mapping[str, Any], size: int) -> AsyncIterator[list[Any]]:
        """Rows of a statement as tuples, `size` at a time from a cursor on the server: what is held does not grow."""
        async with self._driver.cursor(name="pages") as cursor:
            await cursor.execute(statement.encode(), _plain(parameters))
            while rows := await cursor.fetchmany(size):
                yield rows

    async def hot(self, name: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """All rows of a hand-tuned statement; an empty list for one that returns none."""
        async with self._driver.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(hot_statement(name), _plain(parameters))
            return await cursor.fetchall() if cursor.description else []

    async def together(self, *queries: Query | None) -> list[list[dict[str, Any]]]:
        """The rows of several hand-tuned statements in one round trip, none for None; if one fails, all fail."""
        wanted = [query for query in queries if query is not None]
        if len(wanted) < 2:  # noqa: PLR2004 - one alone needs no pipeline
            return [[] if query is None else await self.hot(*query) for query in queries]
        cursors = [self._driver.cursor(row_factory=dict_row) for _ in wanted]
        async with self._driver.pipeline():
            for cursor, query in zip(cursors, wanted, strict=True):
                await cursor.execute(hot_statement(query.name), _plain(query.parameters))
        rows = [await cursor.fetchall() for cursor in cursors]
        return [[] if query is None else rows.pop(0) for query in queries]

    async def touched(self, name: str, parameters: Mapping[str, Any] | None = None) -> int:
        """Number of rows that a hand-tuned statement changed."""
        async with self._driver.cursor() as cursor:
            await cursor.execute(hot_statement(name), _plain(parameters))
            return cursor.rowcount


def _plain(parameters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Parameters with their lists as array literals."""
    if parameters is None:
        return None
    return {name: array_literal(value) if isinstance(value, list) else value for name, value in parameters.items()}


class Database:
    """A pool of connections to Postgres.

    Args:
        url: As libpq writes it.
        pool_size: Connections at most.
        prepare: Whether statements are prepared.
        durable: Whether a commit waits for the disk. What is not waited for survives the process, and is lost only by
            a crash of Postgres itself, and then in the order of the commits: what came later is lost too.
    """

    def __init__(self, url: str, *, pool_size: int = 10, prepare: bool = True, durable: bool = True) -> None:
        # psycopg prepares a statement at its fifth use; behind a transaction pooler that must be off.
        arguments: dict[str, Any] = {"prepare_threshold": 5 if prepare else None}
        self._enter_statement = _ENTER_DURABLE if durable else _ENTER_WITHOUT_WAITING
        self.engine: AsyncEngine = create_async_engine(
            driver_url(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_pre_ping=False,
            pool_use_lifo=True,
            pool_timeout=30,
            # Transactions are begun here, together with the scope: the driver's own BEGIN would be one more round trip.
            isolation_level="AUTOCOMMIT",
            connect_args=arguments,
        )
        self.url = url

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()

    @asynccontextmanager
    async def transaction(
        self, scope: Scope, *, snapshot: bool = False, plans: Plans = "auto"
    ) -> AsyncIterator[Transaction]:
        """Begin a transaction inside `scope`; commits at the end of the block, rolls back on any exception.

        Args:
            scope: What it enters.
            snapshot: All its statements see the rows as they are at its beginning (REPEATABLE READ).
            plans: How its prepared statements are planned.
        """
        async with AsyncExitStack() as stack:
            enter = f"{_BEGIN[snapshot]}{self._enter_statement}{_PLANS[plans]}".encode()
            connection, driver = await self._enter(stack, scope, enter)
            try:
                yield Transaction(connection, driver, scope)
            except BaseException:
                if driver.closed:
                    await connection.invalidate()
                else:
                    await connection.rollback()
                raise
            await connection.commit()

    async def _enter(
        self, stack: AsyncExitStack, scope: Scope, enter: bytes
    ) -> tuple[SqlConnection, AsyncConnection[Any]]:
        """A connection inside `scope`; pooled ones that died with a restarted server are thrown away on the way."""
        while True:
            connection = await stack.enter_async_context(self.engine.connect())
            await connection.begin()  # so that SQLAlchemy hands commit and rollback on to the driver
            raw = await connection.get_raw_connection()
            driver: AsyncConnection[Any] = raw.driver_connection  # type: ignore[assignment]  # untyped by SQLAlchemy
            try:
                # Two statements in one round trip need values bound by the client.
                await AsyncClientCursor(driver).execute(enter, scope.parameters())
            except errors.OperationalError:
                if not driver.closed:
                    raise
                await connection.invalidate()
                await stack.aclose()
                continue
            return connection, driver

    async def run(self, scope: Scope, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` as one unit of work, again when it lost a deadlock, a race or a connection that had gone stale.

        Args:
            scope: What the transaction enters.
            work: Called once for each try; must have no effect outside the transaction.
        """
        for attempt in range(RETRIES):
            try:
                async with self.transaction(scope) as transaction:
                    return await work(transaction)
            except (DBAPIError, errors.Error) as error:
                if attempt + 1 == RETRIES or not _may_run_again(error):
                    raise
                # Full jitter; the first wait is about as long as the transaction that won.
                await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - jitter, not a secret
        raise AssertionError("unreachable")


def _may_run_again(error: Exception) -> bool:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, errors.SerializationFailure | errors.DeadlockDetected)


def is_connection_loss(error: BaseException) -> bool:
    """Whether the database could not be reached or went away, as against refusing what was asked."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, errors.IdleInTransactionSessionTimeout):
        return True  # this process was frozen, and its session ended meanwhile
    if isinstance(cause, errors.Error) and cause.sqlstate is not None:
        return cause.sqlstate[:2] in _AWAY and not isinstance(cause, errors.QueryCanceled)
    return isinstance(cause, errors.OperationalError | errors.InterfaceError | OSError | TimeoutError)
