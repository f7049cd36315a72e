"""The conflict guard: decides about a pair of memory texts that a similarity has nominated.

Similarity only nominates. A pair merges where nothing speaks against it and every content word has its partner on the
other side; where it may say the same but that is not proven, it goes to review.
"""

from __future__ import annotations

from typing import Final

from memory_os.domain.gate.aliases import Aliases
from memory_os.domain.gate.cases import Case
from memory_os.domain.gate.comparing import Comparison, compare
from memory_os.domain.gate.exact import loud_form, normal_form, plain_text, quiet_form
from memory_os.domain.gate.nearness import lexical_score, lexically_near
from memory_os.domain.gate.reading import Reading, read
from memory_os.domain.gate.rewordings import reworded
from memory_os.domain.gate.single_values import apart, new_value, of_one_property
from memory_os.domain.gate.thresholds import Thresholds
from memory_os.domain.gate.tokens import guess_language
from memory_os.domain.gate.verdicts import RULES, Judgement, Statement, Verdict

__all__ = [
    "RULES",
    "Aliases",
    "Judgement",
    "Statement",
    "Thresholds",
    "Verdict",
    "equal_texts",
    "judge",
    "lexical_score",
    "lexically_near",
    "of_one_property",
]

LONGEST: Final = 1_200
"""Characters up to which texts are compared word by word (where the bundled embedder stops reading, too).

Comparing takes time by the square of the words: 12 ms for two texts of this length. Longer ones merge when equal only.
"""


def judge(
    existing: Statement,
    new: Statement,
    *,
    similarity: float | None,
    thresholds: Thresholds,
    recent: bool,
    aliases: Aliases,
) -> Judgement:
    """Decide about a pair.

    Args:
        existing: The memory that is stored.
        new: The one that is to be written.
        similarity: Cosine of their vectors, None where one is missing.
        thresholds: Of the embedder that made the vectors.
        recent: Whether the existing one was created within the past hour.
        aliases: The tenant's declared names.
    """
    structured = _by_structure(existing, new)
    if structured:
        return structured
    if equal_texts(existing.text, new.text):
        return Judgement("merge", "exact", ())
    if max(len(existing.text), len(new.text)) > LONGEST:
        return _without_reading(existing, new, similarity, thresholds)
    found = _compared(existing.text, new.text, aliases)
    threshold = thresholds.recent if recent else thresholds.older
    near = (similarity is not None and similarity >= thresholds.review) or lexically_near(existing.text, new.text)
    sure = similarity is not None and similarity >= threshold
    decided = Case(found, existing, new, near=near, sure=sure).decide()
    if _same_property(existing, new) and decided.verdict in {"distinct", "supersede"}:
        return Judgement("supersede", "new_value", decided.guard)
    return _by_values(existing, new, decided, aliases)


def equal_texts(one: str, other: str) -> bool:
    """Whether two texts have one exact key, also where one of them is written in capitals alone."""
    if normal_form(one) == normal_form(other):
        return True
    for loud, quiet in ((one, other), (other, one)):
        form = loud_form(loud)
        if form is not None and form == quiet_form(quiet):
            return True
    return False


def _same_property(existing: Statement, new: Statement) -> bool:
    named = existing.subject and existing.property and new.subject and new.property
    return bool(named) and _by_structure(existing, new) is None


def _by_values(existing: Statement, new: Statement, decided: Judgement, aliases: Aliases) -> Judgement:
    """What the values say that the texts name: two of one property, or one each of two properties."""
    if decided.verdict in {"distinct", "review"} and "Event" not in {existing.label, new.label}:
        changed = new_value(existing.text, new.text, aliases)
        return Judgement("supersede", "new_value", (*decided.guard, f"value: {changed}")) if changed else decided
    if decided.verdict in {"supersede", "contradict"}:
        others = apart(existing.text, new.text, aliases)
        return Judgement("distinct", others[0], (*decided.guard, others[1])) if others else decided
    return decided


def _by_structure(existing: Statement, new: Statement) -> Judgement | None:
    """What subjects, properties and times decide without the texts."""
    if existing.subject and existing.property and new.subject and new.property:
        if normal_form(existing.subject) != normal_form(new.subject):
            return Judgement("distinct", "other_subject", (f"subject: {existing.subject} / {new.subject}",))
        if normal_form(existing.property) != normal_form(new.property):
            return Judgement("distinct", "other_property", (f"property: {existing.property} / {new.property}",))
    if (
        existing.label == new.label == "Event"
        and existing.occurred_at
        and new.occurred_at
        and existing.occurred_at != new.occurred_at
    ):
        return Judgement("distinct", "other_occasion", ("occurred_at differs",))
    return None


def _without_reading(
    existing: Statement, new: Statement, similarity: float | None, thresholds: Thresholds
) -> Judgement:
    near = similarity is not None and similarity >= thresholds.review
    if near or lexically_near(existing.text, new.text):
        return Judgement("review", "too_long", ())
    return Judgement("distinct", "far", ())


def _compared(one: str, other: str, aliases: Aliases) -> Comparison:
    """The comparison, always made in the same order of the two, so that it can't depend on which came first."""
    left, right = plain_text(one), plain_text(other)
    language = guess_language(*sorted((left, right)))
    if language == "en":
        left, right = reworded(left, right)
    if left <= right:
        return compare(_read(left, language, aliases), _read(right, language, aliases))
    return compare(_read(right, language, aliases), _read(left, language, aliases)).turned()


def _read(text: str, language: str, aliases: Aliases) -> Reading:
    names = tuple((match.start, match.end, match.key) for match in aliases.find(text)) if len(aliases) else ()
    return read(text, language, names)
