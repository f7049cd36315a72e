"""Numbers of a text: digits of any script, words, and the numerals of Chinese, Japanese and Korean."""

# ruff: noqa: PLR0911 - letters of other scripts are meant; a grammar has many ends

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from memory_os.domain.gate.numerals import (
    HAN_DIGITS,
    HAN_TENS,
    MONTHS,
    MULTIPLES,
    NUMBERS,
    ORDINALS,
    SINO_KOREAN,
    UNITS,
    WEEKDAYS,
)
from memory_os.domain.gate.tokens import Token

_ordinal_end = re.compile(r"^(st|nd|rd|th|er|ère|e|º|ª|\.)$")
_KOREAN_COUNTERS: Final = frozenset("번명개시살달권대회마잔병주장층가")
_LARGEST_DENOMINATOR: Final = 16
"""Of what is read as a fraction: 3/4 is one, 2026/27 is none."""
_MYRIAD: Final = 10_000
_HUNDRED: Final = 100
_TWENTY: Final = 20
_TEN: Final = 10
_DECIMAL_COMMA: Final = frozenset({"de", "fr", "es", "it", "pt", "nl", "ru", "el"})


@dataclass(frozen=True, slots=True)
class Quantity:
    """One of them, over the tokens `[first, last)`.

    `sort` is number, ordinal, amount (a number with a unit), share (a part of a whole or a percentage), time, date,
    weekday, or period. `value` is what must be equal.
    """

    sort: str
    value: tuple[object, ...]
    first: int
    last: int
    doubtful: bool = False
    """A time that may be in the morning or in the evening."""
    weak: bool = False
    """A one, which the other text may leave unsaid."""
    bound: str = ""
    """">" for more than, ">=" for at least, "<" for less than, "<=" for up to, "~" for about."""


class Count(NamedTuple):
    """A number, the place after it, and whether it was written in digits, words, as a sign or as an ordinal."""

    value: Fraction
    end: int
    written: str


class Counter:
    """Reads the numbers of one list of tokens."""

    def __init__(self, tokens: list[Token], language: str) -> None:
        self._tokens = tokens
        self._language = language
        self._numbers = NUMBERS.get(language, {})
        self._ordinals = ORDINALS.get(language, {})
        self._months = MONTHS.get(language, {})
        self._days = WEEKDAYS.get(language, {})
        self._counted: dict[int, Count | None] = {}

    def _low(self, place: int) -> str:
        return self._tokens[place].low if 0 <= place < len(self._tokens) else ""

    def _sort(self, place: int) -> str:
        return self._tokens[place].sort if 0 <= place < len(self._tokens) else ""

    @staticmethod
    def _amount_of_seconds(seconds: int, place: int) -> Quantity:
        return Quantity("amount", ("s", Fraction(seconds)), place, place + 1)

    def _number(self, place: int) -> Count | None:
        """Value, end and what it is written as: digits, words or ordinal."""
        if place not in self._counted:
            self._counted[place] = self._count(place)
        return self._counted[place]

    def _count(self, place: int) -> Count | None:
        token = self._tokens[place] if place < len(self._tokens) else None
        if token is None:
            return None
        if token.sort == "number":
            return self._digits(place)
        if token.low in {"-", "minus", "минус"} and self._sort(place + 1) == "number":
            glued = token.low == "-" and place and self._tokens[place - 1].end == token.start
            below = (
                None
                if glued or (token.low == "-" and self._tokens[place + 1].start != token.end)
                else self._digits(place + 1)
            )
            return below and Count(-below.value, below.end, below.written)
        if token.sort == "sign" and len(token.text) == 1 and unicodedata.category(token.text) == "No":
            return Count(Fraction(unicodedata.numeric(token.text)).limit_denominator(100), place + 1, "sign")
        if self._language in {"zh", "ja"}:
            return self._han(place)
        if self._language == "ko":
            return self._korean(place)
        return self._words(place)

    def _digits(self, place: int) -> Count | None:
        token = self._tokens[place]
        value = parse_digits(token.text, self._language)
        if value is None:
            return None
        end = place + 1
        part = self._part_of_one(end)
        if part:
            return Count(value + part, end + 1, "digits")
        if self._sort(end) == "number" and self._low(end + 1) == "/" and value.denominator == 1:
            broken = self._digits(end)
            if broken and 0 < broken.value < 1:
                return Count(value + broken.value, broken.end, "digits")  # 1 1/2
        over = self._tokens[end + 1] if end + 1 < len(self._tokens) else None
        if self._low(end) == "/" and over and over.sort == "number" and over.start == token.end + 1:
            below = parse_digits(over.text, self._language) or Fraction(0)
            if 0 < value < below <= _LARGEST_DENOMINATOR and Fraction(value, below).denominator == below:
                return Count(value / below, end + 2, "digits")
        low = self._low(end)
        glued = end < len(self._tokens) and self._tokens[end].start == token.end
        stop = low == "." and not (self._language == "de" and self._low(end + 1) in self._months)
        if glued and _ordinal_end.match(low) and not stop:
            return Count(value, end + 1, "ordinal")
        if self._language == "ko" and glued and low[:1] in {"만", "천"}:
            return Count(value * MULTIPLES[low[0]], end + (len(low) == 1), "digits")
        if low in MULTIPLES and (glued or low != "k"):
            return Count(value * MULTIPLES[low], end + 1, "digits")
        if glued and low in HAN_TENS:
            return Count(value * HAN_TENS[low], end + 1, "digits")
        return Count(value, end, "digits")

    def _part_of_one(self, place: int) -> Fraction | None:
        """The fraction sign that goes on a whole number: 1½."""
        text = self._tokens[place].text if place < len(self._tokens) else ""
        if len(text) != 1 or unicodedata.category(text) != "No":
            return None
        part = Fraction(unicodedata.numeric(text)).limit_denominator(100)
        return part if 0 < part < 1 else None

    def _words(self, place: int) -> Count | None:
        """Two hundred and five, twenty-one."""
        spelled = _Spelled(self._numbers, self._ordinals)
        end = place
        while not spelled.ordinal and (low := self._low(end)):
            joint = low in {"and", "-"} and spelled.joins(low, self._low(end + 1))
            if not joint and not spelled.take(
                low, self._low(end - 1) if end > place or self._low(end - 1) in {"a", "one"} else ""
            ):
                break
            end += 1
        if end == place:
            return None
        return Count(Fraction(spelled.value), end, "ordinal" if spelled.ordinal else "words")

    def _han(self, place: int) -> Count | None:
        total, part, digit, end, digits = 0, 0, 0, place, ""
        while (low := self._low(end)) in HAN_DIGITS or low in HAN_TENS:
            if low in HAN_DIGITS:
                digit = HAN_DIGITS[low]
                digits += str(digit)
            elif HAN_TENS[low] >= _MYRIAD:
                total, part, digit, digits = (total + part + digit) * HAN_TENS[low], 0, 0, "-"
            else:
                part, digit, digits = part + (digit or 1) * HAN_TENS[low], 0, "-"
            end += 1
        if end == place:
            return None
        # A row of digits without tens is read one by one: the year, a number to call.
        value = int(digits) if digits.isdigit() and len(digits) > 1 else total + part + digit
        return Count(Fraction(value), end, "ordinal" if self._low(place - 1) == "第" else "words")

    def _korean(self, place: int) -> Count | None:
        low, after = self._low(place), self._low(place + 1)
        if low in self._numbers and after and (after[:1] in _KOREAN_COUNTERS or after in UNITS):
            return Count(Fraction(self._numbers[low]), place + 1, "words")
        if len(low) > 1 and all(letter in SINO_KOREAN for letter in low):
            part = digit = 0
            for letter in low:
                if letter == "십":
                    part, digit = part + (digit or 1) * SINO_KOREAN[letter], 0
                else:
                    digit = SINO_KOREAN[letter]
            return Count(Fraction(part + digit), place + 1, "words")
        return None


class _Spelled:
    """A number that is read word by word."""

    def __init__(self, numbers: dict[str, int], ordinals: dict[str, int]) -> None:
        self._numbers = numbers
        self._ordinals = ordinals
        self._total = 0
        self._part = 0
        self._seen = False
        self.ordinal = False

    @property
    def value(self) -> int:
        """What has been read so far."""
        return self._total + self._part

    def take(self, word: str, before: str) -> bool:
        """Add a word; False where it does not go on the number."""
        if word in self._numbers and self._room_for(self._numbers[word]):
            self._part += self._numbers[word]
        elif word in self._ordinals and self._room_for(self._ordinals[word]):
            self._part += self._ordinals[word]
            self.ordinal = True
        elif word in MULTIPLES and (self._seen or (before in {"a", "one"} and word in {"hundred", "thousand"})):
            if MULTIPLES[word] == _HUNDRED:
                self._part = (self._part or 1) * _HUNDRED
            else:
                self._total, self._part = self._total + (self._part or 1) * MULTIPLES[word], 0
        else:
            return False
        self._seen = True
        return True

    def _room_for(self, value: int) -> bool:
        """Seven goes on twenty and on two hundred, not on three."""
        if not self._seen:
            return True
        rest = self._part % _HUNDRED
        return 0 < value < _HUNDRED and (rest == 0 or (rest >= _TWENTY and rest % 10 == 0 and value < _TEN))

    def joins(self, word: str, after: str) -> bool:
        """Whether a hyphen or "and" goes on the number: twenty-one, two hundred and five."""
        following = self._numbers.get(after) or self._ordinals.get(after) or 0
        if not (self._seen and following and self._room_for(following)):
            return False
        return self._part >= _HUNDRED if word == "and" else self._part % _HUNDRED >= _TWENTY


def parse_digits(text: str, language: str) -> Fraction | None:
    """A number in digits of any script, with the decimal sign and the grouping of the language."""
    plain = "".join(
        str(unicodedata.digit(sign)) if sign.isdigit() else sign for sign in text if sign not in " '\u2019\u00a0"
    )
    comma_decimal = language in _DECIMAL_COMMA
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", plain) and not (
        comma_decimal and plain.count(",") == 1 and "." not in plain
    ):
        plain = plain.replace(",", "")
    elif re.fullmatch(r"\d{1,3}(\.\d{3})+(,\d+)?", plain) and (comma_decimal or plain.count(".") > 1):
        plain = plain.replace(".", "").replace(",", ".")
    else:
        plain = plain.replace(",", ".")
    try:
        return Fraction(plain)
    except ValueError:
        return None
