"""Which error of the server is whose fault, and what of a query an error may repeat."""

from __future__ import annotations

import pytest
from redis import exceptions as redis_errors

from memory_os.graph.falkor_replies import (
    ChangedMeanwhileError,
    MissingGraphError,
    describe_error,
    read_reply,
    translate_errors,
)
from memory_os.graph.port import GraphDataError, GraphError, GraphUnavailableError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (redis_errors.ConnectionError("Error 111 connecting"), GraphUnavailableError),
        (redis_errors.TimeoutError("Timeout reading from socket"), GraphUnavailableError),
        (redis_errors.BusyLoadingError("Redis is loading the dataset in memory"), GraphUnavailableError),
        (redis_errors.AuthenticationError("invalid password"), GraphUnavailableError),
        (redis_errors.NoPermissionError("this user has no permissions"), GraphUnavailableError),
        (redis_errors.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), GraphUnavailableError),
        (redis_errors.ReadOnlyError("You can't write against a read only replica."), GraphUnavailableError),
        (redis_errors.ClusterDownError("CLUSTERDOWN The cluster is down"), GraphUnavailableError),
        (redis_errors.ExecAbortError("Transaction discarded"), GraphUnavailableError),
        (redis_errors.ResponseError("Max pending queries exceeded"), GraphUnavailableError),
        (redis_errors.ResponseError("Query timed out"), GraphUnavailableError),
        (redis_errors.ResponseError("BUSY Redis is busy running a script"), GraphUnavailableError),
        (redis_errors.ResponseError("MISCONF Errors writing to the AOF file"), GraphUnavailableError),
        (redis_errors.ResponseError("unknown command 'GRAPH.QUERY', with args"), GraphUnavailableError),
        (redis_errors.ResponseError("WRONGTYPE Operation against a key"), GraphUnavailableError),
        (redis_errors.ResponseError("Encountered different graph value when opened key x"), GraphUnavailableError),
        (redis_errors.InvalidResponse("Protocol Error"), GraphUnavailableError),
        (ConnectionResetError("reset"), GraphUnavailableError),
        (TimeoutError(), GraphUnavailableError),
        (redis_errors.ResponseError("Invalid graph operation on empty key"), MissingGraphError),
        (redis_errors.WatchError("Watched variable changed."), ChangedMeanwhileError),
        (redis_errors.ResponseError("Division by zero"), GraphDataError),
        (redis_errors.ResponseError("Query's mem consumption exceeded capacity"), GraphDataError),
        (redis_errors.ResponseError("Property values can only be of primitive types"), GraphDataError),
        (redis_errors.ResponseError("errMsg: Invalid input 'o': a BUSY text"), GraphDataError),
    ],
    ids=lambda value: str(value)[:40],
)
def test_errors_are_sorted_by_what_they_say_about(error: Exception, expected: type[GraphError]) -> None:
    with pytest.raises(expected) as caught, translate_errors():
        raise error
    assert type(caught.value) is expected


def test_errors_of_the_port_and_of_others_pass() -> None:
    for error in (GraphDataError("ours"), KeyError("a bug")):
        with pytest.raises(type(error)), translate_errors():
            raise error


def test_a_message_does_not_repeat_the_query() -> None:
    error = redis_errors.ResponseError(
        "Command # 2 (GRAPH.QUERY graph CYPHER rows=[secret] MATCH) of pipeline caused error: "
        "errMsg: Invalid input 'o' line: 1, column: 3, offset: 2 errCtx: ...secret... errCtxOffset: 2"
    )
    assert "secret" not in describe_error(error)
    assert "Invalid input" in describe_error(error)
    assert len(describe_error(redis_errors.ResponseError("x" * 10_000))) < 400


def test_rows_of_every_kind_of_scalar_are_read() -> None:
    cells = [[1, None], [2, "text"], [3, 7], [4, "true"], [4, "false"], [5, "0.5"], [6, [[3, 1], [6, []]]]]
    row = [*cells, [10, ["a", [3, 1], "b", [10, []]]]]
    assert read_reply([[["header"]], [row], ["stats"]]) == [
        [None, "text", 7, True, False, 0.5, [1, []], {"a": 1, "b": {}}]
    ]
    assert read_reply([["Nodes created: 1"]]) == []


@pytest.mark.parametrize("reply", [None, [], "OK", [["h"], [[[8, []]]], ["stats"]]])
def test_a_reply_of_another_form_is_the_servers_fault(reply: object) -> None:
    with pytest.raises(GraphUnavailableError):
        read_reply(reply)


def test_an_error_behind_the_rows_counts() -> None:
    with pytest.raises(GraphDataError):
        read_reply([[["header"]], [[[3, 1]]], redis_errors.ResponseError("Division by zero")])
