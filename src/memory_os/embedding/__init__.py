"""Turning text into vectors: the port, its three adapters and the one function that picks between them.

Importing this package loads neither numpy nor onnxruntime nor httpx; an adapter's libraries come in when it is made.
"""

from __future__ import annotations

from memory_os.embedding.factory import EmbedderProvider, make_embedder
from memory_os.embedding.port import (
    Embedder,
    EmbedderDataError,
    EmbedderIdentity,
    EmbedderSettingsError,
    EmbedderUnavailableError,
    EmbeddingError,
)

__all__ = [
    "Embedder",
    "EmbedderDataError",
    "EmbedderIdentity",
    "EmbedderProvider",
    "EmbedderSettingsError",
    "EmbedderUnavailableError",
    "EmbeddingError",
    "make_embedder",
]
