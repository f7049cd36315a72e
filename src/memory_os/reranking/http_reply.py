"""What a rerank endpoint answers, judged.

No message made here repeats the reply's text: endpoints echo the key and the input.
"""

from __future__ import annotations

import math

import msgspec

from memory_os.reranking.port import RerankError


class RefusedError(RerankError):
    """The endpoint finds the request wrong (400, 422): it may want the texts under another name."""


class _Result(msgspec.Struct):
    index: int
    relevance_score: float | None = None
    score: float | None = None


class _Reply(msgspec.Struct):
    results: list[_Result]


def read_scores(body: bytes, *, count: int) -> list[float | None]:
    """Read the body of a 200: scores in the order of the documents, None for those that the endpoint left out.

    Both shapes are read: `{"results": [{"index", "relevance_score"}]}` (Cohere, Jina, vLLM, Infinity, llama.cpp) and
    `[{"index", "score"}]` (text-embeddings-inference).

    Args:
        body: The whole body.
        count: Documents that were sent.

    Raises:
        RerankError: It is cut off, no JSON or of another shape, numbers a document twice or one that was not sent,
            has a score that is no finite number, or has no score at all.
    """
    try:
        bare = body.lstrip()[:1] == b"["
        results = msgspec.json.decode(body, type=list[_Result]) if bare else _decode(body)
    except msgspec.DecodeError:
        raise RerankError("the rerank endpoint's reply is cut off, no JSON, or of another shape") from None
    scores: list[float | None] = [None] * count
    for result in results:
        score = result.score if result.relevance_score is None else result.relevance_score
        if not 0 <= result.index < count or scores[result.index] is not None:
            raise RerankError("the rerank endpoint numbered a document twice, or one that was not sent")
        if score is None or not math.isfinite(score):
            raise RerankError("the rerank endpoint answered a score that is no finite number")
        scores[result.index] = score
    if not results:
        raise RerankError("the rerank endpoint answered no scores")
    return scores


def _decode(body: bytes) -> list[_Result]:
    return msgspec.json.decode(body, type=_Reply).results
