"""Picks the endpoint that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_os.endpoints import key_fault, url_fault
from memory_os.reranking.port import RerankSettingsError

if TYPE_CHECKING:
    from memory_os.reranking.http import HttpReranker


def make_endpoint(*, url: str | None, model: str | None, api_key: str | None, timeout: float) -> HttpReranker:
    """The endpoint for RERANK=endpoint; it is asked nothing before the first question.

    Raises:
        RerankSettingsError: A setting is missing or can't be used; the message names it and how to mend it.
    """
    if not url:
        raise RerankSettingsError("RERANK_URL", "is needed with RERANK=endpoint, such as http://127.0.0.1:8000/v1")
    if not model:
        raise RerankSettingsError("RERANK_MODEL", "is needed with RERANK=endpoint")
    if fault := url_fault(url, key_setting="RERANK_API_KEY"):
        raise RerankSettingsError("RERANK_URL", fault)
    if fault := key_fault(api_key):
        raise RerankSettingsError("RERANK_API_KEY", fault)
    from memory_os.reranking.http import HttpReranker  # noqa: PLC0415 - an adapter's libraries come when it is made

    return HttpReranker(url=url, model=model, api_key=api_key or None, timeout=timeout)
