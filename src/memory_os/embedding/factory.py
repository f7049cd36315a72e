"""Picks the embedder that the settings name."""

from __future__ import annotations

import math
from typing import Literal, get_args

from memory_os.embedding.port import MAX_DIMENSION, Embedder, EmbedderSettingsError
from memory_os.endpoints import key_fault, url_fault

EmbedderProvider = Literal["bundled", "http", "deterministic-for-tests"]

_DEFAULT_TEST_DIMENSION = 384


def make_embedder(
    provider: EmbedderProvider,
    *,
    url: str | None = None,
    api_key: str | None = None,
    model: str | None = None,
    dimension: int | None = None,
    timeout: float = 10.0,
    allow_deterministic: bool = False,
) -> Embedder:
    """Make an embedder that isn't open yet. Only the libraries of the adapter that is picked are imported.

    Args:
        provider: `bundled`, `http`, or for tests `deterministic-for-tests`.
        url: Base URL of the endpoint; for `http` only, and needed there.
        api_key: Bearer token; for `http` only. Appears in no message.
        model: Model name; needed for `http`, elsewhere only what the adapter has anyway.
        dimension: Expected dimension. `http` asks the endpoint where it is None.
        timeout: Seconds that one request to the endpoint may take with its repetitions.
        allow_deterministic: Whether this process may use vectors without meaning; the service sets it from
            `MEMORY_OS_ALLOW_TEST_EMBEDDER=1`, so that no single mistyped setting can pick them.

    Raises:
        EmbedderSettingsError: Settings are missing, contradict each other, or can't work.
    """
    if dimension is not None and not 1 <= dimension <= MAX_DIMENSION:
        raise EmbedderSettingsError("EMBEDDING_DIMENSION", f"{dimension} isn't in 1..{MAX_DIMENSION}")
    if not (math.isfinite(timeout) and timeout > 0):
        raise EmbedderSettingsError("EMBEDDING_TIMEOUT", "the time budget has to be a positive number of seconds")
    if provider not in get_args(EmbedderProvider):
        raise EmbedderSettingsError("EMBEDDING_PROVIDER", f"{provider!r} isn't one of: bundled, http")
    if provider == "http":
        return _make_http(url=url, api_key=api_key, model=model, dimension=dimension, timeout=timeout)
    _refuse_endpoint_settings(provider, url=url, api_key=api_key)
    if provider == "bundled":
        return _make_bundled(model=model, dimension=dimension)
    if not allow_deterministic:
        raise EmbedderSettingsError(
            "EMBEDDING_PROVIDER",
            f"{provider} makes vectors without meaning; only tests that set MEMORY_OS_ALLOW_TEST_EMBEDDER=1 may use it",
        )
    return _make_deterministic(model=model, dimension=dimension)


def _refuse_endpoint_settings(provider: str, *, url: str | None, api_key: str | None) -> None:
    for setting, value in (("EMBEDDING_URL", url), ("EMBEDDING_API_KEY", api_key)):
        if value:
            raise EmbedderSettingsError(setting, f"has no use with EMBEDDING_PROVIDER={provider}: unset one of them")


def _make_http(
    *, url: str | None, api_key: str | None, model: str | None, dimension: int | None, timeout: float
) -> Embedder:
    if not url:
        raise EmbedderSettingsError("EMBEDDING_URL", "is needed with EMBEDDING_PROVIDER=http")
    if not model:
        raise EmbedderSettingsError("EMBEDDING_MODEL", "is needed with EMBEDDING_PROVIDER=http")
    if fault := url_fault(url, key_setting="EMBEDDING_API_KEY"):
        raise EmbedderSettingsError("EMBEDDING_URL", fault)
    if fault := key_fault(api_key):
        raise EmbedderSettingsError("EMBEDDING_API_KEY", fault)
    from memory_os.embedding.http import HttpEmbedder  # noqa: PLC0415 - an adapter's libraries come when it is made

    return HttpEmbedder(url=url, model=model, api_key=api_key or None, dimension=dimension, timeout=timeout)


def _make_bundled(*, model: str | None, dimension: int | None) -> Embedder:
    from memory_os.embedding.bundled import BUNDLED_IDENTITY, BundledEmbedder  # noqa: PLC0415 - as above

    if model not in (None, "", BUNDLED_IDENTITY.model):
        raise EmbedderSettingsError(
            "EMBEDDING_MODEL", f"{model!r} isn't bundled, {BUNDLED_IDENTITY.model!r} is: unset it or use a provider"
        )
    if dimension not in (None, BUNDLED_IDENTITY.dimension):
        raise EmbedderSettingsError(
            "EMBEDDING_DIMENSION", f"the bundled model has {BUNDLED_IDENTITY.dimension}, not {dimension}: unset it"
        )
    return BundledEmbedder()


def _make_deterministic(*, model: str | None, dimension: int | None) -> Embedder:
    from memory_os.embedding.deterministic import (  # noqa: PLC0415 - as above
        DETERMINISTIC_MODEL,
        DeterministicEmbedder,
    )

    if model not in (None, "", DETERMINISTIC_MODEL):
        raise EmbedderSettingsError("EMBEDDING_MODEL", f"{model!r} has no use with {DETERMINISTIC_MODEL}: unset it")
    return DeterministicEmbedder(dimension or _DEFAULT_TEST_DIMENSION)
