"""A corpus for benchmarks: short notes that name people, firms and projects, the same for the same seed.

Names are drawn from a long-tailed distribution, so that a few entities are hubs and most are rare, as in real notes.
"""

from __future__ import annotations

import random

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
