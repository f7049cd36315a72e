"""What the indexer does next for a tenant."""

from __future__ import annotations

import pytest

from memory_os.embedding.port import EmbedderIdentity
from memory_os.settings import Settings
from memory_os_workers.indexer import Partition, Step, next_step

CURRENT = EmbedderIdentity("now", 384)
SETTINGS = Settings(_env_file=None, vector_index_from=10_000, vector_index_tail=1_000)


@pytest.mark.parametrize(
    ("found", "step"),
    [
        (Partition(None, 0, marked=False, waiting=10_000), "rest"),
        (Partition(None, 0, marked=False, waiting=10_001), "build"),
        (Partition("now", 10_001, marked=False, waiting=10_001), "move"),
        (Partition("now", 10_001, marked=False, waiting=0), "move"),
        (Partition("now", 10_001, marked=True, waiting=1_000), "rest"),
        (Partition("now", 10_001, marked=True, waiting=1_001), "move"),
        (Partition("now", 10_001, marked=True, waiting=2_501), "build"),
        (Partition("now", 0, marked=True, waiting=1_001), "build"),
        (Partition("then", 10_001, marked=True, waiting=0), "drop"),
        (Partition("then", 10_001, marked=False, waiting=20_000), "drop"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.model}-{value.marked}-{value.waiting}",
)
def test_the_next_step(found: Partition, step: Step) -> None:
    assert next_step(found, CURRENT, SETTINGS) == step


def test_vectors_that_are_too_long_for_an_index_are_left_alone() -> None:
    long = EmbedderIdentity("now", 4_001)
    assert next_step(Partition(None, 0, marked=False, waiting=50_000), long, SETTINGS) == "rest"
    assert next_step(Partition("now", 9, marked=True, waiting=50_000), long, SETTINGS) == "rest"
    assert next_step(Partition("then", 9, marked=True, waiting=0), long, SETTINGS) == "drop"
