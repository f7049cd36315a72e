"""An embedder for tests: hashed words, no model, the same vectors on every machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory_os.embedding.port import EmbedderIdentity, EmbedderUnavailableError
from memory_os.embedding.vectors import check_texts, normalise_rows

DETERMINISTIC_MODEL = "deterministic-for-tests"

_WORD = re.compile(r"\w+")


class DeterministicEmbedder:
    """`Embedder` whose cosine is the share of common words: enough to rank in a test, useless for meaning.

    Each word, casefolded, adds 1 to the component that its hash picks. Word order doesn't count. A text without words
    (empty, white space, emoji) is one word as it stands.
    """

    def __init__(self, dimension: int) -> None:
        self._identity = EmbedderIdentity(model=DETERMINISTIC_MODEL, dimension=dimension)
        self._closed = False

    @property
    def identity(self) -> EmbedderIdentity:
        """Known from the start."""
        return self._identity

    async def open(self) -> EmbedderIdentity:
        """See `Embedder.open`; there is nothing to load."""
        if self._closed:
            raise EmbedderUnavailableError("the embedder is closed")
        return self._identity

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.embed`."""
        checked = check_texts(texts)
        await self.open()
        counts = np.zeros((len(checked), self._identity.dimension))
        for row, text in enumerate(checked):
            for word in _WORD.findall(text.casefold()) or [text]:
                counts[row, self._bucket(word)] += 1
        return normalise_rows(counts, self._identity.dimension)

    async def close(self) -> None:
        """See `Embedder.close`."""
        self._closed = True

    def _bucket(self, word: str) -> int:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self._identity.dimension
