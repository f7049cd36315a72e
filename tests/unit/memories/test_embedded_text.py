"""What a memory's vector is made of."""

from __future__ import annotations

import pytest

from memory_os.memories.writing import embedded_text


@pytest.mark.parametrize(
    ("title", "text", "embedded"),
    [
        (None, "It won a prize.", "It won a prize."),
        ("Inception", "It won a prize.", "Inception\nIt won a prize."),
        ("Inception", "Inception won a prize.", "Inception won a prize."),
        ("Inception", "Inception", "Inception"),
        ("The pump", " the PUMP: it leaks", " the PUMP: it leaks"),
        (" The pump ", "The pump leaks", "The pump leaks"),
        ("Ann", "Annual figures are due.", "Ann\nAnnual figures are due."),
        ("Ann", "It is about Ann.", "Ann\nIt is about Ann."),
        ("What now?", "What now?We wait.", "What now?We wait."),
        ("A title that is longer than the text", "A title", "A title that is longer than the text\nA title"),
        ("東京", "東京は雨。", "東京\n東京は雨。"),
    ],
    ids=[
        "no title",
        "title and text",
        "beginning with it",
        "the same",
        "in other capitals",
        "with spaces around",
        "a word's beginning",
        "named later",
        "ending in a mark",
        "longer than the text",
        "no spaces between words",
    ],
)
def test_a_title_stands_before_the_text_unless_that_begins_with_it(title: str | None, text: str, embedded: str) -> None:
    assert embedded_text(title, text) == embedded
