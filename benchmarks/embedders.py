"""The product's command line with an embedder for benchmarks in the place of its own.

    python benchmarks/embedders.py api --port 8080

`EMBEDDING_PROVIDER=deterministic-for-tests` gives `ProjectedWords`, whose vectors are dense and cost microseconds;
`bundled` gives `KeptVectors`, the bundled model, which reads from the file `BENCH_VECTORS` what it made before.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory_os.embedding import bundled, deterministic
from memory_os.embedding.bundled import BundledEmbedder
from memory_os.embedding.deterministic import DeterministicEmbedder
from memory_os.embedding.vectors import check_texts, normalise_rows

VECTORS = "BENCH_VECTORS"
"""Names the file with kept vectors; unset, nothing is kept."""

_WORD = re.compile(r"\w+")


class ProjectedWords(DeterministicEmbedder):
    """A text's vector is the sum of random vectors, one for each of its words: dense, and near where words are shared.

    A product's own test embedder has a few components that are not 0, which an index on vectors likes better than
    anything that a model makes.
    """

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.embed`."""
        checked = check_texts(texts)
        dimension = self.identity.dimension
        sums = np.zeros((len(checked), dimension))
        for row, text in enumerate(checked):
            for word in _WORD.findall(text.casefold()) or [text]:
                sums[row] += direction(word, dimension)
        return normalise_rows(sums, dimension)


@lru_cache(maxsize=100_000)
def direction(word: str, dimension: int) -> NDArray[np.float32]:
    """The random vector of a word, the same everywhere."""
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)


class KeptVectors(BundledEmbedder):
    """The bundled model, which looks up what it has embedded before."""

    def __init__(self) -> None:
        super().__init__()
        path = os.environ.get(VECTORS)
        self._kept = VectorFile(Path(path)) if path else None

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.embed`."""
        if self._kept is None:
            return await super().embed(texts)
        checked = check_texts(texts)
        known = self._kept.find(checked)
        missing = [text for text in dict.fromkeys(checked) if text not in known]
        if missing:
            made = dict(zip(missing, await super().embed(missing), strict=True))
            self._kept.keep(made.items())
            known |= made
        rows = [known[text] for text in checked]
        return np.stack(rows) if rows else np.zeros((0, self.identity.dimension), dtype=np.float32)


class VectorFile:
    """Vectors by the text that they were made of, in one file that several processes may use."""

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path, timeout=60, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def find(self, texts: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """Those of these texts whose vectors are there."""
        found = {}
        for text in texts:
            row = self._file.execute("SELECT vector FROM vectors WHERE text = ?", (_key(text),)).fetchone()
            if row:
                found[text] = np.frombuffer(row[0], dtype=np.float32)
        return found

    def keep(self, made: Iterable[tuple[str, NDArray[np.float32]]]) -> None:
        """Add vectors."""
        with self._file:
            self._file.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?)",
                [(_key(text), vector.astype(np.float32).tobytes()) for text, vector in made],
            )


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def main() -> None:
    """Run the command line. The factory imports its adapters when it makes them, and so takes these."""
    from memory_os.cli import main as run  # noqa: PLC0415 - as above

    deterministic.DeterministicEmbedder = ProjectedWords  # type: ignore[misc]
    bundled.BundledEmbedder = KeptVectors  # type: ignore[misc]
    run()


if __name__ == "__main__":
    main()
