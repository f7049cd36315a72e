"""What an endpoint answers is read as a ranking, or refused; never taken for something it is not."""

from __future__ import annotations

import pytest

from memory_os.reranking.factory import make_endpoint
from memory_os.reranking.http_reply import read_scores
from memory_os.reranking.port import RerankError, RerankSettingsError


@pytest.mark.parametrize(
    ("body", "scores"),
    [
        (b'{"id": "r1", "results": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": -3}]}', None),
        (b'{"results": [{"index": 0, "score": -3}, {"index": 1, "relevance_score": 0.5, "document": {}}]}', None),
        (b' [{"index": 1, "score": 0.5}, {"index": 0, "score": -3.0}]', None),
        (b'[{"index": 1, "score": 0.5}]', [None, 0.5]),
    ],
    ids=["cohere", "both names", "bare list", "short list"],
)
def test_each_shape_is_read(body: bytes, scores: list[float | None] | None) -> None:
    assert read_scores(body, count=2) == (scores or [-3.0, 0.5])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"results": [{"index": 0, "relev',
        b"<html>",
        b"[]",
        b'{"results": []}',
        b'{"data": []}',
        b'{"results": [{"index": 2, "relevance_score": 1}]}',
        b'{"results": [{"index": -1, "relevance_score": 1}]}',
        b'{"results": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 2}]}',
        b'{"results": [{"index": 0, "relevance_score": NaN}]}',
        b'{"results": [{"index": 0, "relevance_score": 1e999}]}',
        b'{"results": [{"index": 0, "relevance_score": "high"}]}',
        b'{"results": [{"index": 0}]}',
    ],
)
def test_what_is_no_ranking_is_refused(body: bytes) -> None:
    with pytest.raises(RerankError):
        read_scores(body, count=2)


@pytest.mark.parametrize(
    ("settings", "mend"),
    [
        ({"url": None}, "RERANK_URL: is needed"),
        ({"model": ""}, "RERANK_MODEL: is needed"),
        ({"url": "ftp://host"}, "RERANK_URL: isn't a URL"),
        ({"url": "http://user:hush@host/v1"}, "RERANK_URL: must not hold credentials"),
        ({"api_key": "hush hush"}, "RERANK_API_KEY: holds white space"),
    ],
    ids=["no url", "no model", "another scheme", "credentials", "key with a space"],
)
def test_settings_that_cannot_work_name_themselves(settings: dict[str, str | None], mend: str) -> None:
    given: dict[str, str | None] = {"url": "http://127.0.0.1:1/v1", "model": "ranker", "api_key": None}
    with pytest.raises(RerankSettingsError, match=mend) as caught:
        make_endpoint(**(given | settings), timeout=1.0)  # type: ignore[arg-type]  # None is refused, not allowed
    assert "hush" not in str(caught.value)
