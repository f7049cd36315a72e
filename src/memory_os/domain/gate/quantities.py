"""Numbers, amounts, times, dates, weekdays and periods of a text, in one form whatever they are written as."""

# ruff: noqa: PLR0911 - letters of other scripts are meant; lists of words; a grammar has many ends

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from memory_os.domain.gate.counting import Count, Quantity
from memory_os.domain.gate.dates import Calendar
from memory_os.domain.gate.numerals import DAY, EVERY, MINUTE, PERIODS, SHARES, UNITS
from memory_os.domain.gate.word_lists import words

_TIMES: Final = words("times time fois veces vez volte vezes keer mal раз раза बार 次 回 번 회 φορές مرات")
_TWICE: Final = words("twice thrice tweemaal zweimal dreimal дважды трижды")
_PREFIXED: Final = frozenset("€$£¥₹₽")
_EVERY_OTHER: Final = words("other second zweite zweiten zwei deux dos две due दूसरे दो")
_COUNTLESS: Final = words("a an am im al en в по")
"""Words for "per" after which no number can follow: in two weeks is not every two weeks."""
_NO_PERIOD_AFTER: Final = words("is was for in within than about of such what on over after under half")
"""Before "a week" they make it one week, not every week."""
_ONE_AFTER: Final = words("within than over under")
_ONCE: Final = frozenset({"une fois", "una vez", "una volta", "uma vez", "один раз", "een keer", "एक बार"})
_KOREAN_PERIODS: Final = {
    "일주일에": ("s", 7 * DAY),
    "하루에": ("s", DAY),
    "한달에": ("month", 1),
    "일년에": ("month", 12),
}
_HALVES: Final = frozenset({"s", "month", "g", "l", "m", "mile"})
_LETTERS: Final = frozenset({"h", "m", "g", "l", "s", "t", "v", "w", "mi"})
_PRONOUN_AFTER: Final = words("the no another which each every this that any some")
_PRONOUN_BEFORE: Final = words("who whose which that with another")
_BEFORE_COUNT: Final = words(
    """
    to of with for and or is are has have had in takes take took needs need on only about
    """
) | {""}
_DEGREES: Final = words("degree degrees deg grad degrés grados gradi graus graden")
_SCALES: Final = words("celsius fahrenheit centigrade c f")
_OTHER: Final = 2
_TEN: Final = 10
_kept_as_written = re.compile(r"\d\.\d*0$|^0\d")


class Reader(Calendar):
    """Reads the quantities of one list of tokens."""

    def read(self) -> dict[int, Quantity]:
        """By the place of their first token; no two overlap."""
        found: dict[int, Quantity] = {}
        place = 0
        while place < len(self._tokens):
            quantity = self._at(place)
            if quantity:
                found[place] = quantity
            place = quantity.last if quantity else place + 1
        self._share_units(found)
        return found

    def _share_units(self, found: dict[int, Quantity]) -> None:
        """From 700 to 750 euros: the unit belongs to both."""
        for place, quantity in list(found.items()):
            joint, before = self._low(quantity.last), self._low(place - 1)
            after = found.get(quantity.last + 1)
            number = self._number(place)
            ranging = (before, joint) in {("from", "to"), ("between", "and")}
            if not (ranging and after and number and quantity.sort == "number" and after.sort in {"amount", "share"}):
                continue
            unit = self._number(after.first)
            if unit is None or not unit.value or quantity.value[1:] != ("",):
                continue
            if after.sort == "share":
                found[place] = Quantity("share", (number.value,), place, quantity.last)
            elif isinstance(whole := after.value[1], int | Fraction):
                value = (after.value[0], number.value * whole / unit.value)
                found[place] = Quantity("amount", value, place, quantity.last)

    def _at(self, place: int) -> Quantity | None:
        """What stands at a place, the most telling reading first."""
        return (
            self._and_half(place)
            or self._clock(place)
            or self._date(place)
            or self._weekday(place)
            or self._period(place)
            or self._share(place)
            or self._within_one(place)
            or self._amount(place)
        )

    # Periods

    def _period(self, place: int) -> Quantity | None:
        low = self._low(place)
        if self._language in {"zh", "ja"}:
            return self._unspaced_period(place)
        known = _KOREAN_PERIODS.get(low) if self._language == "ko" else PERIODS.get(low)
        known = known or PERIODS.get(low)
        if known:
            return Quantity("period", known, place, place + 1)
        once = 1 if low in {"once", "einmal"} else 2 * (self._low(place) + " " + self._low(place + 1) in _ONCE)
        if once:
            following = self._period(place + once)
            return following and Quantity("period", following.value, place, following.last)
        if low == "alternate" or (low in EVERY and not (self._language == "hi" and low not in {"हर", "प्रति"})):
            return self._every(place)
        return None

    def _unspaced_period(self, place: int) -> Quantity | None:
        for size in (5, 4, 3, 2):
            words = "".join(self._low(place + step) for step in range(size))
            dated = words in {"每周", "每星期"} and self._low(place + size) in set("一二三四五六日天")
            if words in PERIODS and len(words) == size and not dated:
                return Quantity("period", PERIODS[words], place, place + size)
        return None

    def _every(self, place: int) -> Quantity | None:
        """Every week, every two weeks, every other Saturday, a month."""
        low, end, nth = self._low(place), place + 1, Fraction(1)
        number = None if low in _COUNTLESS else self._number(end)
        if low == "alternate":
            nth = Fraction(2)
        elif self._low(end) in _EVERY_OTHER:
            nth, end = Fraction(2), end + 1
        elif number:
            nth, end = number.value, number.end
        name = self._low(end)
        if nth == _OTHER and name in self._days:
            return Quantity("period", ("weekday", self._days[name], 2), place, end + 1)
        if name in {"night", "nacht", "nuit", "noche"} and low != "a":
            return Quantity("period", ("night", int(nth)), place, end + 1)
        dimension, factor = UNITS.get(name, ("", Fraction(0)))
        if not (dimension == "month" or (dimension == "s" and factor >= MINUTE)):
            return None
        one_of_them = low in {"a", "an"} and (place == 0 or self._low(place - 1) in _NO_PERIOD_AFTER)
        preposition = low in {"a", "à"} and self._language in {"es", "pt", "it", "fr"} and nth == 1
        if one_of_them or preposition or (name == "quarter" and self._low(end + 1) == "of"):
            return None
        return Quantity("period", (dimension, int(factor * nth)), place, end + 1)

    # Shares and amounts

    def _share(self, place: int) -> Quantity | None:
        low, following = self._low(place), self._low(place + 1)
        if low not in SHARES:
            return self._fraction(place)
        if low == "half":
            unit_place = place + 2 if following in {"an", "a", "-"} else place + 1
            unit = UNITS.get(self._low(unit_place))
            if unit and unit[0] in _HALVES:
                return Quantity("amount", (unit[0], unit[1] / 2), place, unit_place + 1)
        if low == "quarter" and following != "of":
            # Three months, unless something says a part of a whole.
            return Quantity("amount", ("month", Fraction(3)), place, place + 1)
        if low in {"third", "fifth", "tenth"} and not (following == "of" and self._low(place - 1) in {"a", "one"}):
            return None
        return Quantity("share", (SHARES[low] * 100,), place, place + 1 + (following == "of"))

    def _fraction(self, place: int) -> Quantity | None:
        number = self._number(place)
        if number and self._language == "en" and number.written != "ordinal":
            # Two in three people, two out of three.
            apart = 1 + (self._low(number.end) == "out")
            whole = self._number(number.end + apart)
            joint = self._low(number.end + apart - 1)
            small = whole is not None and whole.written == number.written and number.value < whole.value <= _TEN
            if whole and small and joint == ("in", "of")[apart - 1] and self._unit(whole.end)[1] is None:
                return Quantity("share", (100 * number.value / whole.value,), place, whole.end)
        if (
            number is None
            or number.written != "words"
            or self._low(number.end) not in {"thirds", "quarters", "fifths", "tenths"}
        ):
            return None
        return Quantity("share", (number.value * SHARES[self._low(number.end)] * 100,), place, number.end + 1)

    def _within_one(self, place: int) -> Quantity | None:
        """Within a month, more than a month, where the article is one."""
        if self._language != "en" or self._low(place) not in {"a", "an"} or self._low(place - 1) not in _ONE_AFTER:
            return None
        dimension, factor = UNITS.get(self._low(place + 1), ("", Fraction(0)))
        return Quantity("amount", (dimension, factor), place, place + 2) if dimension in {"s", "month"} else None

    def _amount(self, place: int) -> Quantity | None:
        low = self._low(place)
        if low in _PREFIXED:
            number = self._number(place + 1)
            return number and Quantity("amount", (UNITS[low][0], number.value), place, number.end)
        number = self._number(place)
        if number is None or self._is_pronoun(place, number):
            return None
        if number.written == "ordinal":
            return Quantity("ordinal", (number.value,), place, number.end)
        return self._compound(place) or self._plain(place, number)

    def _is_pronoun(self, place: int, number: Count) -> bool:
        return self._low(place) == "one" and (
            self._low(place - 1) in _PRONOUN_AFTER or self._low(number.end) in _PRONOUN_BEFORE
        )

    def _plain(self, place: int, number: Count) -> Quantity:
        after = self._low(number.end)
        times = (after[:1] if self._language in {"zh", "ja", "ko"} else after) in _TIMES
        if times or self._low(place) in _TWICE:
            return Quantity("number", (number.value, "x"), place, number.end + times)
        end, unit = self._unit(number.end)
        if unit is None:
            text = self._tokens[place].text
            # 3.1 and 3.10 are one number and two versions.
            exact = text if number.written == "digits" and _kept_as_written.search(text) else ""
            counts = self._sort(number.end) == "word" and self._low(place - 1) in _BEFORE_COUNT
            weak = number.value == 1 and (number.written == "words" or counts)
            return Quantity("number", (number.value, exact), place, number.end, weak=weak)
        if unit[0] == "percent":
            return Quantity("share", (number.value,), place, end)
        return Quantity("amount", (unit[0], number.value * unit[1]), place, end)

    def _unit(self, place: int) -> tuple[int, tuple[str, Fraction] | None]:
        """The unit at a place, with a hyphen before it or not, and where it ends."""
        skip = place + (self._low(place) == "-")
        low = self._low(skip)
        pair = low + self._low(skip + 1)
        if pair in {"percent", "°c", "°f"} and low in {"per", "°"}:
            return skip + 2, UNITS[pair]
        if low in _DEGREES and self._low(skip + 1) in _SCALES:
            return skip + 2, UNITS[self._low(skip + 1)]
        if self._language in {"zh", "ja"}:
            for size in (5, 4, 3, 2, 1):
                words = "".join(self._low(skip + step) for step in range(size))
                if words in UNITS and len(words) >= size:
                    return skip + size, UNITS[words]
            return place, None
        if self._language == "ko":
            sizes = [size for size in (4, 3, 2, 1) if low[:size] in UNITS and (size > 1 or low[:1] in "일주년분원초")]
            return (skip + 1, UNITS[low[: sizes[0]]]) if low and sizes else (place, None)
        if low not in UNITS or (self._language == "en" and low in _LETTERS and skip != place):
            return place, None
        if low == "second" and self._language == "en" and self._sort(place - 1) != "number":
            return place, None
        return skip + 1, UNITS[low]

    def _and_half(self, place: int) -> Quantity | None:
        """An hour and a half, two and a half days."""
        low = self._low(place)
        if self._language != "en" or not (low in {"a", "an"} or low in self._numbers or self._sort(place) == "number"):
            return None
        number = Count(Fraction(1), place + 1, "words") if low in {"a", "an"} else self._number(place)
        if number is None:
            return None
        half = ("and", "a", "half")
        end, unit = self._unit(number.end)
        if unit and tuple(self._low(end + step) for step in range(3)) == half:
            end += 3
        elif tuple(self._low(number.end + step) for step in range(3)) == half:
            end, unit = self._unit(number.end + 3)
        else:
            return None
        if unit is None or unit[0] not in _HALVES:
            return None
        return Quantity("amount", (unit[0], (number.value + Fraction(1, 2)) * unit[1]), place, end)

    def _compound(self, place: int) -> Quantity | None:
        """2 h 5 min 8 s, two hours and five minutes."""
        total, end, parts = Fraction(0), place, 0
        while number := self._number(end):
            after, unit = self._unit(number.end)
            if unit is None or unit[0] != "s":
                break
            total, end, parts = total + number.value * unit[1], after, parts + 1
            if self._low(end) in {"and", ","} and self._sort(end + 1) == "number":
                end += 1
        return Quantity("amount", ("s", total), place, end) if parts > 1 else None
