"""The embedder that needs nothing but the installed packages: MiniLM on a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memory_os.embedding.batching import MicroBatcher
from memory_os.embedding.port import EmbedderIdentity, EmbedderUnavailableError
from memory_os.embedding.vectors import check_texts

if TYPE_CHECKING:
    from memory_os.embedding.minilm import MiniLm

BUNDLED_IDENTITY = EmbedderIdentity(model="all-MiniLM-L6-v2-int8", dimension=384)

_BATCH_SIZE = 32
_BATCH_CHARACTERS = 1_024
"""About 256 tokens of prose, 0.07 s of work on one core: what a search waits for the batch before it. Twice as many
made no more texts a second (measured) and doubled that wait."""
_TEXT_CHARACTERS = 1_200
"""About 256 tokens, where the model stops reading."""


class BundledEmbedder:
    """`Embedder` over the bundled all-MiniLM-L6-v2 (384 dimensions, English, 256 tokens).

    One thread does all the work, and onnxruntime gives up the interpreter's lock while it computes: the event loop
    stays free. onnxruntime and the tokenizer are imported in that thread, when the model is first needed.
    """

    def __init__(self) -> None:
        self._model: MiniLm | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
        self._batcher = MicroBatcher(
            self._encode,
            batch_size=_BATCH_SIZE,
            batch_characters=_BATCH_CHARACTERS,
            text_characters=_TEXT_CHARACTERS,
            lanes=1,
        )

    @property
    def identity(self) -> EmbedderIdentity:
        """Known without loading anything."""
        return BUNDLED_IDENTITY

    async def open(self) -> EmbedderIdentity:
        """Verify and load the model; see `Embedder.open`."""
        if self._closed:
            raise EmbedderUnavailableError("the embedder is closed")
        if self._model is None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._load)
        return self.identity

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Embedder.embed`."""
        checked = check_texts(texts)
        if self._model is None:
            await self.open()
        return await self._batcher.submit(checked, self.identity.dimension)

    async def embed_tokens(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The vectors of each text's tokens, one row a token, each of length 1.

        The texts are run one after the other behind what the thread has to do already: a caller who is in a hurry
        gives few at a time.

        Raises:
            EmbedderUnavailableError: The embedder can't serve now.
            EmbedderDataError: A text can't be used.
        """
        checked = check_texts(texts)
        if self._model is None:
            await self.open()
        if self._model is None or self._closed:
            raise EmbedderUnavailableError("the embedder is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._model.encode_tokens, checked)

    async def close(self) -> None:
        """End after the batch that is running; see `Embedder.close`."""
        self._closed = True
        await self._batcher.close()
        await asyncio.to_thread(self._thread.shutdown)
        self._model = None

    async def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._model is None:
            raise EmbedderUnavailableError("the embedder is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._model.encode, texts)

    def _load(self) -> None:
        """Load once: calls queue up for the one thread, and a caller who gave up leaves a loaded model behind."""
        if self._model is not None:
            return
        # Imported here: onnxruntime and tokenizers take longer to import than the command line to print its help.
        from memory_os.embedding.minilm import MiniLm  # noqa: PLC0415 - the reason is above

        model = MiniLm(BUNDLED_IDENTITY.dimension)
        model.encode(["the first run allocates what later runs use"])
        self._model = model
