"""What FalkorDB and its client answer: rows of scalars, or an error of the graph port."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from redis.exceptions import (
    ClusterDownError,
    ExecAbortError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TryAgainError,
    WatchError,
)
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)

from memory_os.graph.port import GraphDataError, GraphError, GraphUnavailableError

_UNAVAILABLE = (
    RedisConnectionError,  # refused, cut off, LOADING, wrong password
    RedisTimeoutError,
    OutOfMemoryError,
    ReadOnlyError,
    NoPermissionError,
    ClusterDownError,
    RedisClusterException,
    MovedError,
    TryAgainError,
    ExecAbortError,
    OSError,
)
"""What says something about the server and nothing about the data."""

_UNAVAILABLE_TEXT = re.compile(
    r"Max pending queries exceeded|Query timed out|module is currently replicating|unknown command"
    # The key was renamed, dropped or is no graph while a query ran or waited: the next try meets it as it is.
    r"|Encountered (?:an empty key|a non-graph value|different graph)|WRONGTYPE"
    r"|^(?:BUSY|MISCONF|NOREPLICAS|LOADING|READONLY|OOM)\b",
    re.IGNORECASE,
)
"""The same in replies that the client knows no class for; texts of FalkorDB 4.16."""

_WITHOUT_ROWS = 1
"""Length of a reply to a query that returns nothing: its statistics alone."""

_TEXT = 2
_FLOAT = 5
"""Types in a compact reply."""

_MISSING = "Invalid graph operation on empty key"

Reply = list[list[Any]]
"""Rows of scalars."""


class MissingGraphError(GraphError):
    """There is no graph under the key. Reads take it for an empty one; it never leaves this package."""


class ChangedMeanwhileError(GraphError):
    """Somebody wrote to a watched key before the transaction ended, which did nothing. Never leaves this package."""


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn what the client raises into the errors of the graph port."""
    try:
        yield
    except WatchError as error:
        raise ChangedMeanwhileError("The graph changed while it was being written.") from error
    except _UNAVAILABLE as error:
        raise GraphUnavailableError(f"FalkorDB can't serve: {describe_error(error)}") from error
    except ResponseError as error:
        raise translate_reply(error) from error
    except RedisError as error:
        raise GraphUnavailableError(f"FalkorDB answered out of order: {describe_error(error)}") from error


def translate_reply(error: Exception) -> GraphError:
    """Tell from an error reply whether the server, the data or a missing graph is the matter."""
    text = str(error)
    if _MISSING in text:
        return MissingGraphError("There is no such graph.")
    if isinstance(error, _UNAVAILABLE) or _UNAVAILABLE_TEXT.search(text):
        return GraphUnavailableError(f"FalkorDB can't serve: {describe_error(error)}")
    return GraphDataError(f"FalkorDB refused a query: {describe_error(error)}")


def describe_error(error: BaseException) -> str:
    """Say what an error is, without the piece of the query that it may quote: that would be a tenant's data."""
    text = str(error).rpartition("of pipeline caused error: ")[2].partition(" errCtx:")[0]
    return f"{type(error).__name__}: {text[:300]}"


def read_reply(reply: object) -> Reply:
    """Give the rows of a compact reply whose columns are scalars, lists or maps of scalars.

    Raises:
        GraphError: The reply is an error, or ends in one (an error at run time comes behind the rows).
    """
    if isinstance(reply, Exception):
        raise translate_reply(reply) from reply
    if not isinstance(reply, list) or not reply:
        raise GraphUnavailableError("FalkorDB answered with something that is no result.")
    for part in (reply[0], reply[-1]):
        if isinstance(part, Exception):
            raise translate_reply(part) from part
    rows = reply[1] if len(reply) > _WITHOUT_ROWS else []
    return [[read_scalar(cell) for cell in row] for row in rows]


def read_scalar(cell: Sequence[Any]) -> object:
    """Read one (type, value) pair of a compact reply; the numbers are those of FalkorDB's protocol."""
    kind, value = cell
    match kind:
        case 1:
            return None
        case 2 | 3:  # _TEXT, an integer
            return value
        case 4:
            return value == "true"
        case 5:  # _FLOAT
            return float(value)
        case 6:
            # Most lists are of texts or of numbers, which spare a call each: a walk reads some hundred.
            return [
                item[1] if item[0] == _TEXT else float(item[1]) if item[0] == _FLOAT else read_scalar(item)
                for item in value
            ]
        case 10:
            return {value[index]: read_scalar(value[index + 1]) for index in range(0, len(value), 2)}
        case _:
            raise GraphUnavailableError(f"FalkorDB answered with a value of type {kind}, which no query here asks for.")
