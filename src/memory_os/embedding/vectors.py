"""Checks and arithmetic that every adapter does on texts and vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory_os.embedding.port import EmbedderDataError


def check_texts(texts: Sequence[str]) -> list[str]:
    """Copy the texts, refusing what no tokenizer and no JSON can carry.

    Raises:
        TypeError: A bare string was given, which would be embedded letter by letter.
        EmbedderDataError: A text isn't a string, or holds half of a surrogate pair.
    """
    if isinstance(texts, str):
        raise TypeError("embed takes a sequence of texts, not one string")
    checked = list(texts)
    for position, text in enumerate(checked):
        if not isinstance(text, str):
            raise EmbedderDataError(f"text {position} is a {type(text).__name__}, not a string")
        try:
            text.encode()
        except UnicodeEncodeError:
            # From None: the original error carries the text, which has no place in a log.
            raise EmbedderDataError(f"text {position} holds a lone surrogate and isn't valid Unicode") from None
    return checked


def normalise_rows(rows: ArrayLike, dimension: int) -> NDArray[np.float32]:
    """Scale each row to length 1 (L2).

    The arithmetic is in double precision, so that large components don't overflow on the way.

    Args:
        rows: Numbers of shape `(n, dimension)`.
        dimension: The expected number of columns.

    Returns:
        A new float32 array of the same shape.

    Raises:
        EmbedderDataError: Another shape, a number that isn't finite, or a row of zeros, which has no direction.
    """
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise EmbedderDataError("the vectors don't all have the same number of numbers") from None
    if matrix.ndim != 2 or matrix.shape[1] != dimension:  # noqa: PLR2004 - a matrix has two dimensions
        raise EmbedderDataError(f"expected vectors of dimension {dimension}, got an array of shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise EmbedderDataError("a vector holds a number that isn't finite (NaN or infinity)")
    # Scaling by the largest component first keeps the squares of 1e200 and of 1e-200 inside the double range.
    largest = np.abs(matrix).max(axis=1, keepdims=True, initial=0.0)
    if not (largest > 0).all():
        raise EmbedderDataError("a vector is all zeros and has no direction")
    matrix = matrix / largest
    unit: NDArray[np.float32] = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    return unit
