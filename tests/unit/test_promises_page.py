"""The page of promises names tests that are there: a promise whose test has gone is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "concepts" / "promises.md"
ROWS = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| promise |")]


@pytest.mark.parametrize("row", ROWS, ids=[str(number) for number in range(len(ROWS))])
def test_every_promise_is_held_by_tests_that_exist(row: str) -> None:
    *_, held_by, _ = row.split("|")
    named = re.findall(r"`(tests/[^`]+)`", held_by)
    assert named, row
    for address in named:
        path, _, name = address.partition("::")
        assert (ROOT / path).exists(), address
        if name:
            assert re.search(rf"^(async )?def {re.escape(name)}\(", (ROOT / path).read_text(), re.MULTILINE), address


def test_the_page_has_promises() -> None:
    assert len(ROWS) > 20
