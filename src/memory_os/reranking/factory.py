"""Picks the endpoint that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

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
    _check_url(url)
    if api_key is not None and not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        # The HTTP library would refuse it too, with the key in its message.
        raise RerankSettingsError("RERANK_API_KEY", "holds white space or letters that a header can't carry")
    from memory_os.reranking.http import HttpReranker  # noqa: PLC0415 - an adapter's libraries come when it is made

    return HttpReranker(url=url, model=model, api_key=api_key or None, timeout=timeout)


def _check_url(url: str) -> None:
    """Accept only what can be logged whole: HTTP libraries log the URL of each request."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise RerankSettingsError("RERANK_URL", "isn't a URL such as https://host:port/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise RerankSettingsError(
            "RERANK_URL", "must not hold credentials, a query or a fragment; the key belongs in RERANK_API_KEY"
        )
