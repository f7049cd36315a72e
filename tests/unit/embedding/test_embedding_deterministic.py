from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.embedding.deterministic import DeterministicEmbedder

pytestmark = pytest.mark.anyio


async def test_vectors_are_the_same_on_every_machine() -> None:
    (vector,) = await DeterministicEmbedder(8).embed(["red green blue green"])
    np.testing.assert_allclose(vector, [0.5**0.5, 0, 0, 0.5**0.5, 0, 0, 0, 0], atol=1e-6)


async def test_more_shared_words_are_nearer() -> None:
    query, most, some, none = await DeterministicEmbedder(384).embed(
        ["Bob moved to Berlin in May", "bob moved to berlin", "Bob likes tea", "ledger migration runs nightly"]
    )
    assert query @ most > query @ some > query @ none
    assert query @ none == 0


async def test_case_and_order_do_not_count() -> None:
    one, other = await DeterministicEmbedder(384).embed(["Straße nach Köln", "KÖLN nach STRASSE"])
    np.testing.assert_array_equal(one, other)


async def test_texts_without_words_differ_by_what_they_are() -> None:
    vectors = await DeterministicEmbedder(384).embed(["", " ", "🎉", "🚀"])
    assert len({vector.tobytes() for vector in vectors}) == 4


@given(texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=5), dimension=st.integers(1, 50))
async def test_every_text_has_a_unit_vector(texts: list[str], dimension: int) -> None:
    vectors = await DeterministicEmbedder(dimension).embed(texts)
    assert vectors.shape == (len(texts), dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
