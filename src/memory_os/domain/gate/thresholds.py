"""The similarities from which a pair counts as near, by embedder: scales differ wildly between models.

The figures of the bundled model were picked by `benchmarks/dedup.py` on 160 labelled pairs: the highest thresholds that
merge most without a false merge, and as the review floor 0.1 below the highest that leaves 85 % of the duplicates
merged or in review. The seed's pair belongs to its model of 3072 dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Cosine similarities (-1 to 1) of one embedder.

    Attributes:
        recent: From here a memory of the past hour counts as surely near.
        older: The same for any other. Surely near pairs may merge where a few words agree only loosely.
        review: From here a pair that is not proven to be the same goes to review; below, unless its words are near,
            it is distinct.
    """

    recent: float
    older: float
    review: float


BY_MODEL: Final[Mapping[str, Thresholds]] = {
    "all-MiniLM-L6-v2-int8": Thresholds(recent=0.7, older=0.75, review=0.45),
}
"""Calibrated by model name, see above."""

SEED: Final = Thresholds(recent=0.75, older=0.85, review=0.75)
"""The seed's pair; its floor is the lower of the two, since nobody has measured one."""

SEED_DIMENSION: Final = 3072

UNKNOWN: Final = Thresholds(recent=0.85, older=0.9, review=0.75)
"""For models that nobody has calibrated: higher than the seed's, so that less counts as surely near."""


def thresholds_for(model: str, dimension: int) -> Thresholds:
    """The thresholds of an embedder: its calibrated ones, the seed's for 3072 dimensions, else cautious ones."""
    return BY_MODEL.get(model) or (SEED if dimension == SEED_DIMENSION else UNKNOWN)
