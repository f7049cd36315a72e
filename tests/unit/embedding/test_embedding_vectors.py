from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memory_os.embedding.port import EmbedderDataError
from memory_os.embedding.vectors import check_texts, normalise_rows

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ROWS = arrays(np.float64, st.tuples(st.integers(1, 6), st.just(5)), elements=FINITE)


@given(rows=ROWS)
def test_any_finite_row_but_zero_becomes_a_unit_row(rows: np.ndarray) -> None:
    if (rows == 0).all(axis=1).any():
        with pytest.raises(EmbedderDataError, match="zeros"):
            normalise_rows(rows, 5)
        return
    unit = normalise_rows(rows, 5)
    assert unit.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-6)
    assert (np.sign(unit) * np.sign(rows) >= 0).all()


@given(rows=ROWS.filter(lambda rows: bool((np.abs(rows).max(axis=1) > 1e-3).all())), scale=st.floats(1e-3, 1e3))
def test_the_length_of_a_row_does_not_count(rows: np.ndarray, scale: float) -> None:
    np.testing.assert_allclose(normalise_rows(rows / 1e6, 5), normalise_rows(rows / 1e6 * scale, 5), atol=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(EmbedderDataError, match="finite"):
        normalise_rows([[1.0, 2.0], [bad, 1.0]], 2)


@pytest.mark.parametrize(
    "rows", [[[1.0, 2.0]], [1.0, 2.0, 3.0], [[1.0, 2.0, 3.0], [1.0]], [["a", "b", "c"]], [[[1.0]]]]
)
def test_another_shape_is_refused(rows: object) -> None:
    with pytest.raises(EmbedderDataError):
        normalise_rows(rows, 3)  # type: ignore[arg-type] # the point of the test


def test_the_given_array_is_not_changed() -> None:
    rows = np.array([[3.0, 4.0]])
    np.testing.assert_allclose(normalise_rows(rows, 2), [[0.6, 0.8]])
    np.testing.assert_array_equal(rows, [[3.0, 4.0]])


def test_no_rows_stay_no_rows() -> None:
    assert normalise_rows(np.empty((0, 3)), 3).shape == (0, 3)


def test_texts_are_copied() -> None:
    texts = ("a", "b")
    assert check_texts(texts) == ["a", "b"]


@given(text=st.text(st.characters(codec="utf-8")))
def test_every_text_that_utf8_carries_passes(text: str) -> None:
    assert check_texts([text]) == [text]
