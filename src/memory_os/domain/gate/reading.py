"""One text as the guard compares it: its words, names, quantities and marks, with the slot that each stands in."""

# ruff: noqa: PLR0911 - what a token can be is read one case after the other

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from memory_os.domain.gate.counting import Quantity
from memory_os.domain.gate.lemmas import is_past, stem
from memory_os.domain.gate.lexicon import MARKS, Entry, Lexicon, lexicon
from memory_os.domain.gate.numerals import BOUNDS
from memory_os.domain.gate.quantities import Reader
from memory_os.domain.gate.slots import SLOT_WORDS, english_slots, korean_parts, trailing_slots
from memory_os.domain.gate.tokens import Token, tokens

QUANTITIES: Final = frozenset({"number", "ordinal", "amount", "share", "time", "date", "weekday", "period"})

_question = re.compile(r"\?\s*[\"')\]]*$")
_asks: Final = {
    "zh": re.compile("[吗么]$|^(为什么|怎么|什么|谁|哪)"),
    "ja": re.compile("(ですか|ますか|のか|でしょうか)$"),
    "ko": re.compile("(까|나요|가요|는지)$"),
}
_hiragana = re.compile("[\u3041-\u309f]")
_kanji_or_kana = re.compile("[\u30a1-\u30fe\u3400-\u9fff]")
_CONTENT_MARKS: Final = frozenset({"ended", "now"})
_MORE: Final = frozenset({"any more", "anymore", "any longer", "mehr", "meer", "plus", "más", "più", "mais", "πια"})
"""Words that say, after a denial, that something has ended."""
_LONGEST_ENDING: Final = 3
"""Kana that may follow a word as its ending."""


@dataclass(frozen=True, slots=True)
class Item:
    """A word, phrase, name or quantity of a text.

    `sort` is word, first (a capital that begins a sentence), name, mixed (an identifier), mark, or one of `QUANTITIES`.
    """

    text: str
    sort: str
    keys: frozenset[str]
    stems: frozenset[str] = frozenset()
    marks: frozenset[str] = frozenset()
    light: bool = False
    slot: str = ""
    place: int = 0
    """Of its first token."""
    end: int = 0
    past: bool | None = None
    quantity: Quantity | None = None
    joined: bool = False
    """Coordinated with the item before it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, read."""

    language: str
    items: tuple[Item, ...]
    question: bool
    passive: bool
    words: tuple[str, ...]
    """The tokens in lower case, without punctuation."""
    verb: int
    """The place of the main verb's token, -1 where none was found."""
    lows: tuple[str, ...]
    """Every token in lower case."""
    imperative: bool
    """It tells somebody to do something."""
    copula: bool
    """The main verb is a form of be that says what something is."""


@lru_cache(maxsize=4_096)
def read(text: str, language: str, names: tuple[tuple[int, int, str], ...] = ()) -> Reading:
    """Read a text in `plain_text`'s form.

    Args:
        text: The text.
        language: One of `lexicon.LANGUAGES`; other scripts are read as their nearest.
        names: Spans of declared names with their entity's key, in order.
    """
    found = tokens(text, language)
    quantities = Reader(found, language).read()
    items = _Builder(found, quantities, lexicon(language), names).build()
    lows = tuple(token.low for token in found)
    items = _no_more(items, lows)
    words = tuple(token.low for token in found if token.sort != "sign")
    items, passive, verb = _slotted(items, found, language)
    doing = any(low.endswith("ing") for low in lows[verb + 1 : verb + 4])
    copula = verb >= 0 and not passive and not doing and lows[verb] in {"is", "are", "was", "were"}
    imperative = (
        language == "en" and bool(lows) and (verb == 0 or lows[0] in {"never", "always", "please", "do", "don"})
    )
    if language == "zh" and text.rstrip(" .").endswith("了"):
        # He does not smoke + le: he has given it up.
        items = [replace(item, marks=item.marks | {"ended"}) if "not" in item.marks else item for item in items]
    asks = bool(_question.search(text)) or bool(language in _asks and _asks[language].search(text.rstrip(" .")))
    return Reading(language, tuple(items), asks, passive, words, verb, lows, imperative, copula)


def _no_more(items: list[Item], lows: tuple[str, ...]) -> list[Item]:
    """Not ... any more is one statement: that something has ended. More alone says no such thing."""
    kept: list[Item] = []
    for item in items:
        if "ended" not in item.marks or item.text.casefold() not in _MORE:
            kept.append(item)
            continue
        denial = next((at for at in range(len(kept) - 1, -1, -1) if "not" in kept[at].marks), None)
        if denial is not None:
            kept.pop(denial)
            kept.append(item)
        elif {"ne", "n"} & set(lows):
            kept.append(item)
        else:
            kept.append(replace(item, marks=item.marks - {"ended"}))
    return kept


def _slotted(items: list[Item], found: list[Token], language: str) -> tuple[list[Item], bool, int]:
    if language in {"ja", "hi"}:
        return trailing_slots(items, found, language), False, -1
    if language == "en":
        return english_slots(items, found)
    if language == "ko":
        return items, False, -1
    markers = SLOT_WORDS.get(language, {})
    slotted = []
    for item in items:
        before = found[item.place - 1].low if item.place else ""
        slotted.append(replace(item, slot=markers.get(before, "")))
    return slotted, False, -1


class _Builder:
    """Turns tokens into items."""

    def __init__(
        self,
        found: list[Token],
        quantities: dict[int, Quantity],
        words: Lexicon,
        names: tuple[tuple[int, int, str], ...],
    ) -> None:
        self._tokens = found
        self._quantities = quantities
        self._lexicon = words
        self._language = words.language
        self._names = names
        self._items: list[Item] = []

    def build(self) -> list[Item]:
        place = 0
        while place < len(self._tokens):
            place = self._take(place)
        return self._items

    def _take(self, place: int) -> int:
        """Read what begins at a token; gives the place after it."""
        token = self._tokens[place]
        for start, end, key in self._names:
            if start <= token.start < end:
                last = place
                while last < len(self._tokens) and self._tokens[last].start < end:
                    last += 1
                slot = korean_parts(token.low)[1] if self._language == "ko" else ""
                self._add(place, last, "name", {f"@{key}"}, slot=slot)
                return last
        bound_end = self._bound(place)
        if bound_end:
            return bound_end
        phrase = self._phrase(place)
        quantity = self._quantities.get(place)
        if quantity and not (
            phrase and phrase[0] - place > quantity.last - place and not self._crosses(place, phrase[0])
        ):
            return self._quantity(quantity)
        if phrase:
            return self._entry(place, *phrase)
        if token.sort == "sign":
            return place + 1
        if self._language in {"zh", "ja"} and token.sort == "letter":
            return self._letter(place)
        return self._word(place)

    def _bound(self, place: int) -> int | None:
        """Where a phrase such as "more than" ends that stands before an amount, which then carries it."""
        for size in (4, 3, 2, 1):
            words = tuple(token.low for token in self._tokens[place : place + size])
            sign = BOUNDS.get(words) if len(words) == size else None
            after = self._quantities.get(place + size)
            if (
                sign
                and after is None
                and self._tokens[place + size : place + size + 1]
                and self._tokens[place + size].low in {"a", "an", "the"}
            ):
                after = self._quantities.get(place + size + 1)
            if sign and after and after.sort in {"number", "amount", "share"} and words != ("from",):
                self._quantities[after.first] = replace(after, bound=sign)
                return place + size
        return None

    def _crosses(self, place: int, end: int) -> bool:
        """Whether a quantity of digits lies in a phrase: digits are never swallowed by one."""
        return any(self._tokens[at].sort in {"number", "clock", "date"} for at in range(place, end)) or any(
            place < at < end and self._quantities[at].last > end for at in self._quantities
        )

    def _quantity(self, quantity: Quantity) -> int:
        text = " ".join(token.text for token in self._tokens[quantity.first : quantity.last])
        key = f"{quantity.sort}:{'/'.join(map(str, quantity.value))}"
        self._add(
            quantity.first, quantity.last, quantity.sort, {key}, text=text, quantity=quantity, light=quantity.weak
        )
        return quantity.last

    def _phrase(self, place: int) -> tuple[int, Entry] | None:
        """The longest phrase of the lists here, of two tokens or more; or the entry of a single one."""
        first = self._tokens[place]
        if first.sort in {"sign", "mixed", "number"} and first.low not in self._lexicon.longest:
            return None
        longest = max(self._lexicon.longest.get(first.low, 0), self._lexicon.longest.get(first.lemma, 0))
        lows: list[str] = []
        lemmas: list[str] = []
        at = place
        spans: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
        while at < len(self._tokens) and len(lows) < longest:
            token = self._tokens[at]
            if token.low != "-":
                if token.sort == "sign" and token.low != "'":
                    break
                lows.append(token.low)
                lemmas.append(token.lemma)
                spans.append((at + 1, tuple(lows), tuple(lemmas)))
            at += 1
        for end, low, lemmatised in reversed(spans):
            entry = self._lexicon.find(low)
            if low != lemmatised and (len(low) > 1 or not first.capital or first.first):
                base = self._lexicon.find(lemmatised)
                if base and (entry is None or not base.sorts - entry.sorts):
                    entry = Entry(entry.sorts, entry.concepts | base.concepts) if entry else base
            if entry and not (len(low) > 1 and any(self._is_name(at) for at in range(place, end))):
                return end, entry
        return None

    def _is_name(self, place: int) -> bool:
        token = self._tokens[place]
        return (
            token.capital
            and not token.first
            and self._language not in {"de", "zh", "ja", "ko", "hi", "ar"}
            and self._lexicon.find((token.low,)) is None
        )

    def _entry(self, place: int, end: int, entry: Entry) -> int:
        span = self._tokens[place:end]
        marks = entry.sorts & MARKS
        if marks & {"some", "all"} and end in self._quantities:
            return end  # "Some 40 people" are about 40.
        empty = bool(entry.sorts & {"drop", "light"})
        capital = span[0].capital and not span[0].first and self._language != "de" and len(span) == 1
        keys = set(entry.concepts)
        joint = "" if self._language in {"zh", "ja"} else " "
        words = [token for token in span if token.low != "-"]
        keys |= {"l:" + joint.join(token.low for token in words), "l:" + joint.join(token.lemma for token in words)}
        stems = {stem(words[0].low, self._language)} if len(words) == 1 and not empty else set()
        if "drop" in entry.sorts and not marks and not (capital and len(span[0].text) > 1 and entry.concepts):
            return end
        if marks and (empty or not marks & _CONTENT_MARKS or (marks - _CONTENT_MARKS and not entry.concepts)):
            self._add(place, end, "mark", keys, marks=marks, light=True)
            return end
        sort = "name" if capital and not entry.sorts and not entry.concepts else "word"
        past = is_past(span[0].low) if self._language == "en" else None
        slot = korean_parts(span[-1].low)[1] if self._language == "ko" else ""
        self._add(place, end, sort, keys, stems=stems, marks=marks, light="light" in entry.sorts, past=past, slot=slot)
        return end

    def _letter(self, place: int) -> int:
        token = self._tokens[place]
        if self._language == "ja" and _hiragana.match(token.low):
            # Endings that follow a word are no content; kana that begin after a particle are.
            run = 0
            at = place - 1
            while at >= 0 and _hiragana.match(self._tokens[at].low):
                run, at = run + 1, at - 1
            if at >= 0 and _kanji_or_kana.match(self._tokens[at].low) and run < _LONGEST_ENDING:
                return place + 1
        self._add(place, place + 1, "word", {"l:" + token.low})
        return place + 1

    def _word(self, place: int) -> int:
        token = self._tokens[place]
        if self._language == "ko":
            return self._korean(place)
        keys = {"l:" + token.low}
        if token.sort in {"mixed", "katakana", "number", "clock", "date"}:
            self._add(place, place + 1, "mixed" if token.sort == "mixed" else "word", keys)
            return place + 1
        if token.capital and not token.first and self._language != "de":
            self._add(place, place + 1, "name", keys)
            return place + 1
        sort = "first" if token.capital and token.first else "word"
        past = is_past(token.low) if self._language == "en" else None
        keys.add("l:" + token.lemma)
        self._add(place, place + 1, sort, keys, stems={stem(token.low, self._language)}, past=past)
        return place + 1

    def _korean(self, place: int) -> int:
        token = self._tokens[place]
        base, slot = korean_parts(token.low)
        for form in (token.low, base, base[:-1]):
            entry = self._lexicon.find((form,)) if form else None
            if entry and (form != base[:-1] or (len(form) > 1 and "drop" not in entry.sorts)):
                marks = entry.sorts & MARKS
                if "drop" in entry.sorts and not marks:
                    return place + 1
                if marks and not (marks & _CONTENT_MARKS and entry.concepts):
                    self._add(place, place + 1, "mark", {"l:" + form}, marks=marks, light=True)
                else:
                    self._add(
                        place, place + 1, "word", {"l:" + form, *entry.concepts}, marks=marks,
                        light="light" in entry.sorts, slot=slot,
                    )  # fmt: skip
                return place + 1
        self._add(place, place + 1, "word", {"l:" + base}, slot=slot)
        return place + 1

    def _add(
        self,
        place: int,
        end: int,
        sort: str,
        keys: set[str],
        *,
        text: str = "",
        stems: set[str] = frozenset(),  # type: ignore[assignment]  # an empty default that nobody changes
        marks: frozenset[str] = frozenset(),
        light: bool = False,
        past: bool | None = None,
        slot: str = "",
        quantity: Quantity | None = None,
    ) -> None:
        shown = text or " ".join(token.text for token in self._tokens[place:end])
        self._items.append(
            Item(shown, sort, frozenset(keys), frozenset(stems), marks, light, slot, place, end, past, quantity)
        )
