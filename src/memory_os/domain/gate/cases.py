"""One pair on its way through the rules of the guard."""

from __future__ import annotations

from typing import Final

from memory_os.domain.gate import conflicts
from memory_os.domain.gate.comparing import STRICT, Comparison, bare
from memory_os.domain.gate.conflicts import BLOCKING
from memory_os.domain.gate.exchanges import exchanges
from memory_os.domain.gate.lemmas import lemma
from memory_os.domain.gate.nouns import ID_NOUNS, PER, ROLE_NOUNS, ROLE_PARTS
from memory_os.domain.gate.reading import QUANTITIES, Item, Reading
from memory_os.domain.gate.structure import unproven
from memory_os.domain.gate.verdicts import Judgement, Statement, Verdict
from memory_os.domain.gate.word_lists import words

_ABOUT: Final = 0.5
"""Share of content words that both sides must share before a conflict says anything about the pair."""
_MOSTLY: Final = 0.65
"""The same for a denial, which a rewording makes in many ways."""
_REWORDED: Final = 0.2
"""The same where a word says that something has changed."""
_ROLES: Final = 0.6
_OPPOSED: Final = 0.4
"""The same for exchanged roles, and for opposite words."""

_LIGHT_VERBS: Final = frozenset(
    f"l:{lemma(verb, 'en')}"
    for verb in ("get", "take", "go", "make", "come", "become", "put", "keep", "give", "let", "use", "bring", "set",
                 "carry", "hold", "involve")
)  # fmt: skip
_LIKING: Final = frozenset(lemma(verb, "en") for verb in ("like", "prefer", "love", "enjoy", "favour", "favor"))
_COPULAS: Final = words("is are was were be : = has have costs weighs takes")
_DEFINITE: Final = frozenset({"the", "our", "my", "this"})
_WESTERN: Final = frozenset({"en", "de", "fr", "es", "it", "pt", "nl", "ru", "el"})


class Case:
    """The findings of a comparison, and the verdict that follows from them."""

    def __init__(self, found: Comparison, existing: Statement, new: Statement, *, near: bool, sure: bool) -> None:
        """Look for every sort of conflict.

        Args:
            found: The two texts beside each other, the existing one on the left.
            existing: The memory that is stored.
            new: The one that is to be written.
            near: Whether the similarity or the words speak for the pair at all.
            sure: Whether the similarity is above the tier's threshold.
        """
        self._found = found
        self._near = near
        self._sure = sure
        self._low, self._high = sorted(found.covers)
        self._about = self._low >= _ABOUT and found.matched > 0
        self._events = existing.label == new.label == "Event"
        self._quantities = conflicts.quantity_conflicts(found)
        self._names = conflicts.name_conflicts(found)
        self._against, self._others = conflicts.opposites(found)
        self._nots = conflicts.negations(found)
        self._left_marks = conflicts.marks_of([*found.left_marks, *found.left_over])
        self._right_marks = conflicts.marks_of([*found.right_marks, *found.right_over])
        self._lone_marks = [mark for mark in BLOCKING if (mark in self._left_marks) != (mark in self._right_marks)]
        self._exchanges = exchanges(found)
        self._guard: list[str] = []
        self._note()

    def _note(self) -> None:
        self._guard += [f"{sort}: {one.text} / {other.text}" for sort, one, other in self._quantities]
        self._guard += [f"name: {one.text} / {other.text}" for one, other in self._names]
        self._guard += [f"opposite: {one.text} / {other.text}" for one, other in self._against]
        self._guard += [f"other: {one.text} / {other.text}" for one, other in self._others]
        if self._nots[0] != self._nots[1]:
            self._guard.append(f"negation: {self._nots[0]} / {self._nots[1]}")
        self._guard += [f"{mark}: one side only" for mark in self._lone_marks if mark != "not"]
        self._guard += [f"roles: {shown}" for shown in (*self._exchanges.swapped, *self._exchanges.doubtful)]

    def decide(self) -> Judgement:
        """The first rule that applies, the most telling first."""
        for rule in (
            self._question, self._never, self._ended, self._roles, self._negated, self._number, self._name,
            self._opposite, self._merge, self._object,
        ):  # fmt: skip
            decision = rule()
            if decision:
                return decision
        return self._as("review", "unproven") if self._near else self._as("distinct", "far")

    def _as(self, verdict: Verdict, rule: str) -> Judgement:
        return Judgement(verdict, rule, tuple(self._guard))

    def _question(self) -> Judgement | None:
        if self._found.left.question == self._found.right.question:
            return None
        self._guard.append("question: one side only")
        if self._high >= _ABOUT or not self._near:
            return self._as("distinct", "question")
        return self._as("review", "unproven")

    def _claims_the_same(self) -> bool:
        """Whether the two claim something of one kind about one thing.

        Whoever has moved may still keep two dogs, and when one moves another need not. In English alone, where what
        stands before the verb is whom a text speaks of; elsewhere it is taken for granted.
        """
        left, right = self._found.left, self._found.right
        if left.language != "en" or left.verb < 0 or right.verb < 0:
            return True
        return not self._other_subject() and self._shares_predicate()

    def _shares_predicate(self) -> bool:
        left, right = self._found.left, self._found.right
        if lemma(left.lows[left.verb], "en") == lemma(right.lows[right.verb], "en"):
            return True
        for one, other in self._found.pairs:
            before = (one.place < left.verb, other.place < right.verb)
            if one.sort == "mark" or (one.light and other.light) or all(before):
                continue
            if one.sort not in STRICT or other.sort not in STRICT or not any(before):
                return True
        return False

    def _other_subject(self) -> bool:
        """Something before the verb is left over on both sides: the chess club and the chess school, Ann and Bo."""
        left, right = self._found.left, self._found.right
        mine = [item for item in self._found.left_over if _may_be_subject(left, item)]
        yours = [item for item in self._found.right_over if _may_be_subject(right, item)]
        shared = {word for item, _ in self._found.pairs for word in item.text.casefold().split()}
        if left.copula and right.copula and shared & ROLE_NOUNS:
            return False  # Ann is the treasurer, Bo is now the treasurer.
        names = {item.sort in STRICT for item in (*mine, *yours)} == {True}
        return bool(mine and yours) and (names or bool({item.slot for item in mine} & {item.slot for item in yours}))

    def _never(self) -> Judgement | None:
        if "was" not in self._lone_marks or self._high < _ABOUT or not self._claims_the_same():
            return None
        left = "was" in self._left_marks
        denied, other_marks = (self._nots[1], self._right_marks) if left else (self._nots[0], self._left_marks)
        if denied or "all" in other_marks:
            return self._as("contradict", "was_and_never")
        return self._as("supersede", "ended")

    def _ended(self) -> Judgement | None:
        if "ended" not in self._lone_marks or self._quantities or self._names or not self._claims_the_same():
            return None
        return self._as("supersede", "ended") if self._found.matched and self._high >= _ABOUT else None

    def _roles(self) -> Judgement | None:
        if not self._exchanges.swapped or self._low < _ROLES:
            return None
        if self._against or self._others:
            # Sold to and bought from exchange the roles and the verb.
            return None if self._quantities or self._names else self._as("review", "unproven")
        if self._exchanges.ordering:
            return self._as("contradict", "order_reversed")
        return self._as("distinct", "roles_exchanged")

    def _negated(self) -> Judgement | None:
        left, right = self._nots
        denying = self._right_marks if right > left else self._left_marks
        if left != right and "now" in denying and self._about and not self._names:
            return self._as("supersede", "ended")  # It now does not.
        universal = "all" in {*self._left_marks, *self._right_marks}
        if left == right:
            return None
        if (left % 2 != right % 2 or (not min(left, right) and self._low >= _MOSTLY and not universal)) and (
            self._about and not self._names
        ):
            if self._against or self._others or self._high < _MOSTLY:
                return self._as("review", "unproven")
            return self._as("contradict", "negated")
        return (
            self._as("contradict", "negated") if universal and self._high >= _ABOUT and left % 2 != right % 2 else None
        )

    def _number(self) -> Judgement | None:
        moved = "now" in self._right_marks and self._high >= _ABOUT and self._low >= _REWORDED
        if not self._quantities or not (self._about or moved):
            return None
        if self._names:
            return self._as("distinct", "other_name")
        if all(_opposite_bounds(one, other) for _, one, other in self._quantities):
            return self._as("contradict", "opposite")
        if self._events or any(self._names_something(one, other) for _, one, other in self._quantities):
            return self._as("distinct", "other_number")
        if not self._claims_the_same():
            return self._as("distinct", "other_property")
        return self._as("supersede", "number_changed")

    def _names_something(self, one: Item, other: Item) -> bool:
        return _is_identifier(self._found.left, one) and _is_identifier(self._found.right, other)

    def _name(self) -> Judgement | None:
        if not self._names or self._high < _ABOUT:
            return None
        moved = "now" in self._right_marks and self._about and self._claims_the_same()
        if moved or (len(self._names) == 1 and self._holds_a_place(*self._names[0])):
            return self._as("supersede", "name_changed")
        return self._as("distinct", "other_name")

    def _holds_a_place(self, one: Item, other: Item) -> bool:
        """Each is said to hold a role that one alone can hold."""
        shared = {word for item, _ in self._found.pairs for word in item.text.casefold().split()}
        text = "".join(self._found.left.lows)
        if not shared & ROLE_NOUNS and not any(part in text for part in ROLE_PARTS):
            return False
        sides = ((self._found.left, one), (self._found.right, other))
        return all(
            item.place > max((kept.place for kept in reading.items if kept is not item), default=-1)
            for reading, item in sides
        )

    def _opposite(self) -> Judgement | None:
        if not (self._against or self._others) or self._low < _OPPOSED or not self._found.matched:
            return None
        if not all(self._claims(one, other) for one, other in self._others):
            return self._as("distinct", "other_direction")
        if self._nots[0] % 2 != self._nots[1] % 2:
            return self._as("review", "unproven")
        return self._as("contradict", "opposite")

    def _claims(self, one: Item, other: Item) -> bool:
        """Whether a pair such as open and close is what is claimed, not which thing: open the vent, it is closed."""
        told = one.place == other.place == 0
        sides = ((self._found.left, one), (self._found.right, other))
        return told or all(_says_state(reading) and item.end > reading.verb for reading, item in sides)

    def _merge(self) -> Judgement | None:
        found = self._found
        if not self._unopposed():
            return None
        over = [item for item in (*found.left_over, *found.right_over) if not item.light]
        self._guard += [f"left over: {item.text}" for item in over]
        self._guard += [f"loose: {pair}" for pair in found.loose]
        self._guard += [f"tense: {change}" for change in conflicts.tense_changes(found)]
        if len(self._guard) == len(found.loose):
            open_questions = unproven(found)
            self._guard += open_questions
            if open_questions:
                return None
        if not self._guard:
            return self._as("merge", "aligned") if found.pairs else None
        few = found.loose and len(self._guard) == len(found.loose) <= found.matched // 2
        # An embedder does not know that two names are one.
        sure = self._sure or (self._near and any(_renamed(one, other) for one, other in found.pairs))
        return self._as("merge", "aligned_loosely") if few and sure else None

    def _unopposed(self) -> bool:
        """Whether nothing speaks against the two saying the same, whatever is left over."""
        found = self._found
        if self._quantities or self._names or self._against or self._others or self._nots[0] != self._nots[1]:
            return False
        if self._exchanges.swapped or self._exchanges.doubtful:
            return False
        # "Keep it shut" says that it must be kept shut.
        told = found.left.imperative or found.right.imperative
        if any(mark != "must" or not told for mark in self._lone_marks):
            return False
        self._guard = []
        bounded = any(_bounds(one, other) for one, other in found.pairs)
        both_ways = (found, found.turned())
        exchanged = any(conflicts.negates_another(side) or conflicts.number_swaps(side) for side in both_ways)
        directions = conflicts.contrasts(found)
        self._guard += [f"direction: {pair}" for pair in directions]
        if directions:
            return False
        if bounded or exchanged:
            self._guard.append("bound or order: one side only")
            return False
        # Neither side says much, but giving is not taking.
        verbs = [
            {key for item in side if item.light for key in item.keys & _LIGHT_VERBS}
            for side in (found.left_over, found.right_over)
        ]
        return not (verbs[0] and verbs[1])

    def _object(self) -> Judgement | None:
        found = self._found
        if self._low < _ABOUT or not conflicts.one_slot_differs(found) or "now" in self._right_marks:
            return None
        if not (found.left_over and found.right_over):
            return None
        one, other = found.left_over[0], found.right_over[0]
        self._guard.append(f"object: {one.text} / {other.text}")
        if all({bare(key) for key in item.keys} & _LIKING for item in (one, other)):
            return self._as("review", "unproven")
        if not self._events and _per_unit(found.left, one) and _per_unit(found.right, other):
            return self._as("supersede", "number_changed")
        if self._holds_a_place(one, other):
            return self._as("supersede", "name_changed")
        return self._as("distinct", "other_object")


def _may_be_subject(reading: Reading, item: Item) -> bool:
    """A content word before the main verb."""
    return item.place < reading.verb and item.sort not in QUANTITIES and not item.light


def _renamed(one: Item, other: Item) -> bool:
    """Whether two names are written differently and declared to be one."""
    return one.text != other.text and any(key.startswith("@") for key in one.keys & other.keys)


def _says_state(reading: Reading) -> bool:
    """Is open, is closed: what something is, not what it does."""
    being = {"is", "are", "was", "were"} & set(reading.lows[max(0, reading.verb - 1) : reading.verb + 1])
    return bool(being) and "by" not in reading.lows and not reading.lows[reading.verb].endswith("ing")


def _bounds(one: Item, other: Item) -> bool:
    """More than 800 against 800; about 800 may be 800."""
    if one.quantity is None or other.quantity is None:
        return False
    return one.quantity.bound != other.quantity.bound and bool(
        {one.quantity.bound[:1], other.quantity.bound[:1]} & {"<", ">"}
    )


def _opposite_bounds(one: Item, other: Item) -> bool:
    """At least nine, at most nine."""
    mine, yours = one.quantity, other.quantity
    if mine is None or yours is None or mine.value != yours.value:
        return False
    return {mine.bound[:1], yours.bound[:1]} == {"<", ">"}


def _per_unit(reading: Reading, item: Item) -> bool:
    """Whether a word is what a price or a rate is reckoned by: 20 a crate."""
    before = reading.lows[item.place - 1] if item.place else ""
    return before in PER and any(
        other.sort in QUANTITIES and 0 <= item.place - 1 - other.end <= 1 for other in reading.items
    )


def _is_identifier(reading: Reading, item: Item) -> bool:
    """Whether a number names what it stands beside (Lane 6, port 70), or says which one is meant."""
    before = reading.lows[max(0, item.place - 2) : item.place]
    last = before[-1] if before else ""
    if (item.sort == "number" and last in ID_NOUNS) or (last == "in" and "ending" in before):
        return True
    if item.sort == "number" and item.text[:1].isdigit() and last not in _COPULAS and _follows_noun(reading, item):
        return True
    # Before the verb, after "the": it says which one.
    return reading.verb > item.place and bool(_DEFINITE & set(before))


def _follows_noun(reading: Reading, number: Item) -> bool:
    noun = next((item for item in reading.items if item.end == number.place), None)
    if noun is None or noun.place == reading.verb or reading.language not in _WESTERN:
        return False
    subject = reading.verb < 0 or number.place < reading.verb or noun.slot not in {"O", "V", "S", ""}
    named = noun.sort in {"name", "first"} or (noun.sort == "word" and reading.verb > number.place)
    return subject and named
