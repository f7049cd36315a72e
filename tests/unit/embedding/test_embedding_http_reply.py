from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
import pytest

from memory_os.embedding.http_reply import (
    InputTooLargeError,
    PassingFaultError,
    RequestRefusedError,
    judge_failure,
    read_vectors,
)
from memory_os.embedding.port import EmbedderDataError, EmbedderUnavailableError

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def list_of(*items: Any, **extra: Any) -> bytes:
    return json.dumps({"object": "list", "data": list(items), **extra}).encode()


def item(index: int | None, *numbers: Any) -> dict[str, Any]:
    return {"embedding": list(numbers)} | ({} if index is None else {"index": index})


def test_vectors_come_back_in_the_order_of_the_texts() -> None:
    vectors = read_vectors(list_of(item(1, 0, 2), item(0, 3, 0), model="m", usage={}), count=2, dimension=2)
    np.testing.assert_allclose(vectors, [[1, 0], [0, 1]])


def test_vectors_without_numbers_are_in_the_order_of_the_texts() -> None:
    vectors = read_vectors(list_of(item(None, 5, 0), item(None, 0, 1)), count=2, dimension=None)
    np.testing.assert_allclose(vectors, [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (list_of(item(0, 1, 0)), "1 vectors for 2"),
        (list_of(item(0, 1, 0), item(1, 0, 1), item(2, 1, 1)), "3 vectors for 2"),
        (list_of(), "0 vectors for 2"),
        (list_of(item(0, 1, 0), item(0, 0, 1)), "gaps or twice"),
        (list_of(item(0, 1, 0), item(None, 0, 1)), "gaps or twice"),
        (list_of(item(1, 1, 0), item(2, 0, 1)), "gaps or twice"),
        (list_of(item(-1, 1, 0), item(0, 0, 1)), "gaps or twice"),
        (list_of(item(0, 1, 0), item(1, 1, 0, 0)), "dimension 3, expected 2"),
        (list_of(item(0, 1, 0), item(1)), "dimension 0, expected 2"),
        (list_of(item(0, 1, 0), item(1, 0, 0)), "all zeros"),
        (list_of(item(0, 1, 0), item(1, None, 1)), "shape"),
        (list_of(item(0, 1, 0), item(1, "0.5", 1)), "shape"),
        (list_of(item(0, 1, 0), {"index": 1, "embedding": "AACAPw=="}), "shape"),
        (list_of(item(0, 1, 0), {"index": 1}), "shape"),
        (list_of(item(0, 1, 0), item(1, float("nan"), 1)), "NaN"),
        (list_of(item(0, 1, 0), item(1, float("-inf"), 1)), "NaN or infinity"),
        (b'{"data":[{"index":0,"embedding":[1e999,1]},{"index":1,"embedding":[1,1]}]}', "shape|infinity"),
        (b"[]", "shape"),
        (b"{}", "shape"),
        (b"null", "shape"),
    ],
)
def test_what_cannot_be_stored_is_a_data_error(body: bytes, words: str) -> None:
    with pytest.raises(EmbedderDataError, match=words):
        read_vectors(body, count=2, dimension=2)


@pytest.mark.parametrize(
    "body", [b"", b"<html>busy</html>", list_of(item(0, 1, 0), item(1, 0, 1))[:-9], b'{"data":[\xff']
)
def test_a_reply_that_is_no_json_may_be_better_next_time(body: bytes) -> None:
    with pytest.raises(PassingFaultError):
        read_vectors(body, count=2, dimension=2)


def test_an_error_dressed_as_a_success_may_pass() -> None:
    with pytest.raises(PassingFaultError):
        read_vectors(b'{"error": {"message": "upstream is busy"}}', count=2, dimension=2)


@pytest.mark.parametrize("width", [0, 16_001])
def test_a_probed_dimension_that_no_column_holds_is_refused(width: int) -> None:
    with pytest.raises(EmbedderDataError, match=r"not in 1\.\.16000"):
        read_vectors(list_of(item(0, *[1.0] * width)), count=1, dimension=None)


def judge(status: int, message: str = "", *, code: str | None = None, **headers: str) -> Exception:
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    hyphened = {name.replace("_", "-"): value for name, value in headers.items()}
    return judge_failure(httpx.Response(status, headers=hyphened), body, NOW)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_faults_that_may_pass(status: int) -> None:
    assert isinstance(judge(status, "overloaded"), PassingFaultError)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens, however you requested 10000 tokens"),
        (400, "the input length exceeds the context length"),
        (413, "Input validation error: `inputs` must have less than 512 tokens. Given: 514"),
        (413, ""),
        (422, "batch size 100 > maximum allowed batch size 32"),
        (500, "input (992 tokens) is too large to process. increase the physical batch size"),
        (400, "Too many inputs in request, split into more batches."),
    ],
)
def test_requests_that_are_too_large(status: int, message: str) -> None:
    assert isinstance(judge(status, message), InputTooLargeError)


@pytest.mark.parametrize(
    ("status", "message"), [(429, "you exceeded your tokens per minute"), (503, "too many tokens in flight")]
)
def test_a_rate_limit_is_not_taken_for_a_large_request(status: int, message: str) -> None:
    assert isinstance(judge(status, message), PassingFaultError)


@pytest.mark.parametrize("status", [400, 422])
def test_other_refusals_concern_the_data(status: int) -> None:
    assert isinstance(judge(status, "no"), RequestRefusedError)


@pytest.mark.parametrize(
    ("status", "setting"),
    [
        (401, "EMBEDDING_API_KEY"),
        (403, "EMBEDDING_API_KEY"),
        (404, "EMBEDDING_URL and EMBEDDING_MODEL"),
        (405, "EMBEDDING_URL"),
        (418, ""),
    ],
)
def test_what_an_operator_has_to_mend_keeps_the_text_for_later(status: int, setting: str) -> None:
    error = judge(status, "no")
    assert type(error) is EmbedderUnavailableError
    assert setting in str(error)


def test_a_redirect_is_not_followed_and_names_the_setting() -> None:
    error = judge(301, "", location="http://elsewhere/v1")
    assert type(error) is EmbedderUnavailableError
    assert "EMBEDDING_URL" in str(error)
    assert "elsewhere" not in str(error)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0),
        ("7", 7),
        ("1.5", 1.5),
        ("Mon, 04 May 2026 12:00:30 GMT", 30),
        ("Mon, 04 May 2026 12:00:30 -0000", 30),
        ("Mon, 04 May 2026 11:00:00 GMT", 0),
        ("soon", None),
        ("-3", None),
        ("nan", None),
        ("", None),
    ],
)
def test_retry_after_is_read_in_both_its_forms(header: str, seconds: float | None) -> None:
    fault = judge(429, retry_after=header)
    assert isinstance(fault, PassingFaultError)
    assert fault.retry_after == seconds


def test_without_the_header_nothing_is_asked() -> None:
    fault = judge(503)
    assert isinstance(fault, PassingFaultError)
    assert fault.retry_after is None


def test_messages_carry_the_code_and_never_the_reply() -> None:
    assert "invalid_api_key" in str(judge(401, "sk-secret is wrong", code="invalid_api_key"))
    assert "secret" not in str(judge(401, "sk-secret is wrong", code="sk-secret-1"))
    for body in (b"sk-secret", b'{"error": "sk-secret"}', b'{"error": ["sk-secret"]}', b'"sk-secret"', b"\xff"):
        assert "secret" not in str(judge_failure(httpx.Response(400), body, NOW))


def test_dates_are_measured_from_now() -> None:
    later = NOW + timedelta(seconds=90)
    fault = judge(503, retry_after=later.strftime("%a, %d %b %Y %H:%M:%S GMT"))
    assert isinstance(fault, PassingFaultError)
    assert fault.retry_after == 90
