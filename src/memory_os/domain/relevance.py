"""How well records answer a question, by its words and its vector, alone and in what surrounds them. No I/O.

The weights were set on the development conversations and multi-hop sets alone, each conversation left out in turn;
the ablation in the documentation shows what each is worth. They are round on purpose.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Id = TypeVar("Id", bound=Hashable)

WORDS: Final = 0.2
SIMILARITY: Final = 0.2
WORDS_AROUND: Final = 0.3
SIMILARITY_AROUND: Final = 0.3
"""What a record's own words and vector count, and those of its window; of a record without one its own count twice."""

UNLIKE: Final = 0.2
"""Cosine that says nothing, as it makes no hit: what is beyond it counts. 0.1 is as good on the development data."""

LIKE: Final = 0.5
"""Cosine that the best has to reach to count in full: the nearest of strangers is a stranger still."""

SESSION: Final = 0.2
"""What the best of its conversation adds to a turn; a record that stands alone adds itself."""

ANSWERS: Final = 0.4
"""What a turn gains that follows one which asks for the same."""

SHORTNESS: Final = 0.25
SUBSTANTIAL_WORDS: Final = 20
"""What a turn loses that says next to nothing; one of so many words loses nothing: short ones greet and agree."""

ASKS: Final = 0.1
"""What a turn loses that only asks."""

SPEAKER: Final = 0.1
"""What a turn gains whose speaker the question names."""

TIMELY: Final = 0.25
"""What a turn gains that names a time where the question asks for one."""

WINDOW: Final = 2
"""Turns to each side that make up the window of a turn."""


@dataclass(frozen=True, slots=True)
class Turn(Generic[Id]):
    """A turn of a conversation among the candidates.

    Attributes:
        session: The conversation.
        words_around: What the question's words weigh in its window.
        similarity_around: The mean cosine of its window.
        length: Its words, function words dropped.
        asking: The share of its sentences that ask.
        before: The turn before it, where that is a candidate too, and the share of its sentences that ask.
        names_speaker: The question names who speaks.
        timely: The question asks for a time, and it names one.
    """

    session: Hashable
    words_around: float
    similarity_around: float
    length: int
    asking: float = 0.0
    before: tuple[Id, float] | None = None
    names_speaker: bool = False
    timely: bool = False


def score_relevance(
    words: Mapping[Id, float], similarities: Mapping[Id, float], turns: Mapping[Id, Turn[Id]]
) -> dict[Id, float]:
    """The relevance of each record: 0..1.2 for one that stands alone, a little more for the best turns.

    Args:
        words: What the question's words weigh in each record (BM25); missing is nothing.
        similarities: The cosine of each record that has a vector; below `UNLIKE` it is nothing.
        turns: Those records that are turns of a conversation.
    """
    idents = words.keys() | similarities.keys() | turns.keys()
    similarities = {one: value - UNLIKE for one, value in similarities.items()}
    own_words = _shares(words)
    # What has no vector at all, such as a business record, is as near as its words are.
    own_similarity = own_words | _shares(similarities, LIKE - UNLIKE)
    words_around = own_words | _shares(
        {one: turns[one].words_around if one in turns else words.get(one, 0.0) for one in idents}
    )
    near = {
        one: turns[one].similarity_around - UNLIKE if one in turns else value for one, value in similarities.items()
    }
    similarity_around = own_similarity | _shares(near, LIKE - UNLIKE)
    core = {
        one: WORDS * own_words.get(one, 0.0)
        + SIMILARITY * own_similarity.get(one, 0.0)
        + WORDS_AROUND * words_around.get(one, 0.0)
        + SIMILARITY_AROUND * similarity_around.get(one, 0.0)
        for one in idents
    }
    best: dict[Hashable, float] = {}
    for one, turn in turns.items():
        best[turn.session] = max(best.get(turn.session, 0.0), core[one])
    return {
        one: core[one] + SESSION * best[turns[one].session] + _speaking(turns[one], own_words, own_similarity)
        if one in turns
        else core[one] * (1 + SESSION)
        for one in idents
    }


def _speaking(turn: Turn[Id], words: Mapping[Id, float], similarities: Mapping[Id, float]) -> float:
    """What a turn gains and loses as something said."""
    answers = 0.0
    if turn.before is not None:
        before, asking = turn.before
        answers = asking * (words.get(before, 0.0) + similarities.get(before, 0.0)) / 2
    return (
        ANSWERS * answers
        - SHORTNESS * (1 - min(turn.length, SUBSTANTIAL_WORDS) / SUBSTANTIAL_WORDS)
        - ASKS * turn.asking
        + SPEAKER * turn.names_speaker
        + TIMELY * turn.timely
    )


def _shares(values: Mapping[Id, float], least: float = 0.0) -> dict[Id, float]:
    """Each value as a share of the greatest, which counts as `least` at least."""
    most = max(least, *values.values()) if values else 0.0
    return {one: max(0.0, value) / most for one, value in values.items()} if most > 0 else dict.fromkeys(values, 0.0)
