"""The port of an embedder: what the write path, retrieval and the re-embed job ask of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # Only for annotations: numpy costs 60-100 ms at start, and `memory-os --help` needs no vector.
    import numpy as np
    from numpy.typing import NDArray


MAX_DIMENSION = 16_000
"""The most that pgvector's `vector` type stores."""


class EmbeddingError(Exception):
    """Base class of what an embedder raises."""


class EmbedderUnavailableError(EmbeddingError):
    """The embedder can't serve now (refused, time-out, rate limit, credentials, closed).

    Nothing is wrong with the text: a caller may store it without a vector and embed it later.
    """


class EmbedderDataError(EmbeddingError):
    """What went in or came out can't be used: a text was refused, or a reply has a wrong shape, dimension or number.

    Trying the same text again at the same embedder gives the same error.
    """


class EmbedderSettingsError(EmbeddingError):
    """The settings don't name one embedder that can work.

    Attributes:
        setting: The environment variable to mend, such as `EMBEDDING_URL`.
    """

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.setting = setting


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What is stored beside each vector. Vectors can be compared only where both fields are equal.

    Attributes:
        model: Name of the model that made the vector.
        dimension: Numbers in one vector.
    """

    model: str
    dimension: int


class Embedder(Protocol):
    """Makes vectors of texts. One instance serves a whole process, from any number of tasks of one event loop."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Model and dimension; constant once known.

        Raises:
            EmbedderUnavailableError: The dimension isn't known before `open`.
        """
        ...

    async def open(self) -> EmbedderIdentity:
        """Load the model or probe the endpoint, once; later calls answer at once, after a failure they try again.

        Raises:
            EmbedderUnavailableError: The endpoint can't be reached, or the embedder was closed.
            EmbedderDataError: The model files aren't the pinned ones, or the endpoint answers with something unusable.
        """
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Answer one vector a text, in the order of the texts; opens the embedder first where nobody has.

        Any number of texts may be given; they travel in batches. A text longer than the model reads is embedded by
        its beginning. A text without any letter is embedded too: what it is near to means nothing.

        Args:
            texts: Texts of any length; none gives an array of shape `(0, dimension)`.

        Returns:
            Array of shape `(len(texts), dimension)`, float32, each row of length 1 (L2). It belongs to the caller.

        Raises:
            EmbedderUnavailableError: The embedder can't serve now. No vector of this call is kept.
            EmbedderDataError: A text or the reply for it can't be used. Texts of other callers are not affected.
        """
        ...

    async def close(self) -> None:
        """Release threads and connections; waiting and later calls raise `EmbedderUnavailableError`. Idempotent."""
        ...
