"""A corpus for benchmarks: short notes that name people, firms and projects, the same for the same seed.

Names are drawn from a long-tailed distribution, so that a few entities are hubs and most are rare, as in real notes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate, islice, product

GIVEN = "Ann Bob Carl Dora Emil Fay Gus Hana Ivo Jana Karl Lena Milo Nora Otto Pia Quin Rosa Sven Tara".split()
FAMILY = "Miller Stone Berg Novak Frost Hale Reyes Lund Okafor Silva Tanaka Weber Young Zhao Adler Brandt".split()
FIRMS = "Northwind Ardal Finch Harbor Summit Granite Willow Falcon Juniper Orchard".split()
KINDS = "Freight Partners Logistics Foods Energy Robotics Textiles Insurance".split()
WORDS = (
    "agreed to move the shipment before the quarter ends because customs needs more time and the rates went up "
    "after the holiday while the schema of the export was still under review by the team that owns the process"
).split()


def names(entities: int) -> list[str]:
    """So many different names."""
    people = [f"{given} {family}" for given in GIVEN for family in FAMILY]
    firms = [f"{firm} {kind}" for firm in FIRMS for kind in KINDS]
    base = people + firms
    return [
        base[index % len(base)] + (f" {index // len(base)}" if index >= len(base) else "") for index in range(entities)
    ]


def notes(count: int, *, entities: int = 2000, seed: int = 7) -> list[str]:
    """So many notes, each naming about three entities."""
    source = random.Random(seed)
    known = names(entities)
    made = []
    for number in range(count):
        # Squaring a uniform draw puts a quarter of all mentions on a sixteenth of the names.
        chosen = [known[int(source.random() ** 2 * entities)] for _ in range(3)]
        words = " ".join(source.choices(WORDS, k=8))
        made.append(f"Note {number}: {chosen[0]} met {chosen[1]}, {words} with {chosen[2]}.")
    return made


LETTERS = ("b d f g k l m n p r s t v z".split(), "a e i o u".split())
VOCABULARY = 20_000
"""Words of the notes by Zipf's law, about as many as a firm's notes have."""

_SKEW = 2.7
"""As in Mandelbrot's form of the law: without it the first word would be a tenth of all text."""


class World:
    """Words and names with the popularity of real ones: by Zipf's law, so that a few of either are everywhere.

    Args:
        entities: How many names there are; those of a smaller world are the first ones of a larger one.
        seed: Of the notes and questions; names and words are the same in every world.
    """

    def __init__(self, entities: int, seed: int) -> None:
        self._source = random.Random(seed)
        self.names = list(islice(_made_names(), entities))
        self.words = list(islice(_made_words(), VOCABULARY))
        self._fame = list(accumulate(1 / (rank + _SKEW) for rank in range(entities)))
        self._use = list(accumulate(1 / (rank + _SKEW) for rank in range(VOCABULARY)))

    def notes(self, count: int) -> Iterator[str]:
        """So many notes of some twenty words, each naming one to three entities."""
        for _ in range(count):
            named = iter(self._source.choices(self.names, cum_weights=self._fame, k=self._source.randint(1, 3)))
            said = self._source.choices(self.words, cum_weights=self._use, k=self._source.randint(8, 16))
            middle = len(said) // 2
            note = f"{next(named)} said that {' '.join(said[:middle])}"
            note += "".join(f", with {name}" for name in named)
            yield f"{note}, and {' '.join(said[middle:])}."

    def questions(self, count: int) -> list[str]:
        """Questions that name somebody, the more popular the more often, and use words of the notes."""
        made = []
        for _ in range(count):
            name = self._source.choices(self.names, cum_weights=self._fame)[0]
            first, second = self._source.choices(self.words, cum_weights=self._use, k=2)
            rare = self.words[self._source.randrange(1_000, VOCABULARY)]
            made.append(f"What did {name} say about the {first} {rare} and {second}?")
        return made


def _made_words() -> Iterator[str]:
    """Different words of two or three syllables, the short ones first."""
    syllables = [first + second for first in LETTERS[0] for second in LETTERS[1]]
    source = random.Random(17)
    for length in (2, 3):
        made = ["".join(parts) + "n" for parts in product(syllables, repeat=length)]
        source.shuffle(made)
        yield from made


def _made_names() -> Iterator[str]:
    """Different names of two parts."""
    parts = [word.capitalize() for word in islice(_made_words(), 400)]
    pairs = [(first, last) for first in parts for last in parts]
    random.Random(18).shuffle(pairs)
    return (f"{first}er {last}sky" for first, last in pairs)
