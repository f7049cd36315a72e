"""How well records answer a question, by its words and its vector, alone and in what surrounds them. No I/O.

The weights were set on the development conversations and multi-hop sets alone, each conversation left out in turn;
the ablation in the documentation shows what each is worth. They are round on purpose.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
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
    idents = [*(words.keys() | similarities.keys() | turns.keys())]
    spoken = [turns.get(one) for one in idents]
    lexical = [words.get(one, 0.0) for one in idents]
    cosines = [similarities.get(one) for one in idents]
    own_words = _shares(lexical)
    own_similarity = _nearness(cosines, own_words)
    words_around = _shares([turn.words_around if turn else value for turn, value in zip(spoken, lexical, strict=True)])
    around = [turn.similarity_around if turn else value for turn, value in zip(spoken, cosines, strict=True)]
    similarity_around = _nearness(around, words_around)
    core = [
        WORDS * one + SIMILARITY * two + WORDS_AROUND * three + SIMILARITY_AROUND * four
        for one, two, three, four in zip(own_words, own_similarity, words_around, similarity_around, strict=True)
    ]
    best: dict[Hashable, float] = {}
    for turn, value in zip(spoken, core, strict=True):
        if turn is not None:
            best[turn.session] = max(best.get(turn.session, 0.0), value)
    place = {one: at for at, one in enumerate(idents)} if turns else {}
    scores = {}
    for at, (one, turn) in enumerate(zip(idents, spoken, strict=True)):
        if turn is None:
            scores[one] = core[at] * (1 + SESSION)
            continue
        before = place.get(turn.before[0]) if turn.before else None
        match = 0.0 if before is None else (own_words[before] + own_similarity[before]) / 2
        scores[one] = core[at] + SESSION * best[turn.session] + _speaking(turn, match)
    return scores


def _speaking(turn: Turn[Id], match_before: float) -> float:
    """What a turn gains and loses as something said; `match_before` is how well the turn before it fits, 0..1."""
    asking = turn.before[1] if turn.before else 0.0
    return (
        ANSWERS * asking * match_before
        - SHORTNESS * (1 - min(turn.length, SUBSTANTIAL_WORDS) / SUBSTANTIAL_WORDS)
        - ASKS * turn.asking
        + SPEAKER * turn.names_speaker
        + TIMELY * turn.timely
    )


def _shares(values: Sequence[float]) -> list[float]:
    """Each value as a share of the greatest."""
    most = max(values, default=0.0)
    return [max(0.0, value) / most for value in values] if most > 0 else [0.0] * len(values)


def _nearness(cosines: Sequence[float | None], words: Sequence[float]) -> list[float]:
    """Each cosine as a share of the greatest; a business record, which has no vector, is as near as its words."""
    most = max(LIKE, *(value for value in cosines if value is not None), LIKE) - UNLIKE
    return [
        word if value is None else max(0.0, value - UNLIKE) / most for value, word in zip(cosines, words, strict=True)
    ]
