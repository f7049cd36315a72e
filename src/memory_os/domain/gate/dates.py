"""Dates, months and weekdays."""

from __future__ import annotations

import re
from typing import Final

from memory_os.domain.gate.clocks import Clock
from memory_os.domain.gate.counting import Count, Quantity
from memory_os.domain.gate.word_lists import words

_LONGEST_MONTH: Final = 31
_MONTHS_IN_YEAR: Final = 12
_COMMON_WORDS: Final = words("may march mar jan dec sep oct august april june")
"""Months that are common words or names too: a small letter says that they are none."""
_GIVEN_NAMES: Final = words("april june august may")
_BEFORE_MONTH: Final = words("in of since until till by from last next every this each the")
_DAY_JOINTS: Final = frozenset({"of", ".", "de", "th", "di"})
_SHORT_DAYS: Final = words("sat sun mon wed fri")
_STAR_PERIOD: Final = 3
"""Letters of a weekday that is not written in two."""
_HAN_DAYS: Final = "一二三四五六日"
_JAPANESE_DAYS: Final = "月火水木金土日"
_year = re.compile(r"(19|20)\d\d")


class Calendar(Clock):
    """Reads dates, months and weekdays."""

    def _date(self, place: int) -> Quantity | None:
        if self._tokens[place].sort == "date":
            return _written_date(self._tokens[place].text, place)
        if self._language in {"zh", "ja", "ko"}:
            return self._east_asian_date(place)
        month = self._month(place)
        if month:
            day = self._day(place + 1 + (self._low(place + 1) == "the"))
            return self._with_year(place, day.end if day else place + 1, month, int(day.value) if day else None)
        day = self._day(place)
        if day is None:
            return None
        end = day.end
        while self._low(end) in _DAY_JOINTS and end < day.end + 2:
            end += 1
        month = self._month(end)
        return self._with_year(place, end + 1, month, int(day.value)) if month else None

    def _day(self, place: int) -> Count | None:
        number = self._number(place)
        return number if number and number.value.denominator == 1 and 1 <= number.value <= _LONGEST_MONTH else None

    def _month(self, place: int) -> int | None:
        low = self._low(place)
        if low not in self._months:
            return None
        if self._language == "en" and low in _COMMON_WORDS and not self._is_english_month(place):
            return None
        return self._months[low]

    def _is_english_month(self, place: int) -> bool:
        token = self._tokens[place]
        if not token.capital or (token.first and token.low in {"may", "march"} and not self._low(place + 1).isdigit()):
            return False
        # April Ross is somebody's name, "in May Dr. Ross" has a month.
        after = self._tokens[place + 1] if place + 1 < len(self._tokens) else None
        named = token.low in _GIVEN_NAMES and after is not None and after.capital and after.sort == "word"
        return not named or self._low(place - 1) in _BEFORE_MONTH

    def _with_year(self, first: int, last: int, month: int, day: int | None) -> Quantity:
        end = last + (self._low(last) in {",", "de"})
        year = None
        if self._sort(end) == "number" and _year.fullmatch(self._tokens[end].text):
            year, last = int(self._tokens[end].text), end + 1
        return Quantity("date", (year, month, day), first, last)

    def _east_asian_date(self, place: int) -> Quantity | None:
        parts: dict[str, int] = {}
        end = place
        for names in ("年년", "月월", "日号號일"):
            number = self._number(end)
            word = self._low(number.end) if number else ""
            if number is None or number.value.denominator != 1 or not word or word[0] not in names:
                continue
            if word.startswith("일주") or (names[0] == "月" and self._low(number.end - 1) in {"个", "ヶ", "か"}):
                break
            parts[names[0]] = int(number.value)
            end = number.end + 1
        if "月" not in parts:
            return None
        return Quantity("date", (parts.get("年"), parts["月"], parts.get("日")), place, end)

    def _weekday(self, place: int) -> Quantity | None:
        token = self._tokens[place]
        if self._language == "zh":
            return self._chinese_weekday(place)
        if self._language == "ja":
            if token.low not in _JAPANESE_DAYS or self._low(place + 1) != "曜":
                return None
            return _weekday(_JAPANESE_DAYS.index(token.low), place, place + 2 + (self._low(place + 2) == "日"))
        if self._language == "ko":
            day = next((day for name, day in self._days.items() if token.low.startswith(name)), None)
            return _weekday(day - 1, place, place + 1) if day else None
        day = self._days.get(token.low)
        if day is None or (token.low in _SHORT_DAYS and (not token.capital or token.first)):
            return None
        return _weekday(day - 1, place, place + 1)

    def _chinese_weekday(self, place: int) -> Quantity | None:
        letters = [self._low(place + step) for step in range(3)]
        size = 2 if letters[0] == "周" else _STAR_PERIOD
        if size == _STAR_PERIOD and letters[0] + letters[1] not in {"星期", "礼拜"}:
            return None
        day = letters[size - 1].replace("天", "日")
        return _weekday(_HAN_DAYS.index(day), place, place + size) if day and day in _HAN_DAYS else None


def _weekday(index: int, first: int, last: int) -> Quantity:
    return Quantity("weekday", (index + 1,), first, last)


def _written_date(text: str, place: int) -> Quantity:
    parts = [int(part) for part in re.split(r"\D", text)]
    year, month, day = parts if "-" in text else (parts[2], parts[1], parts[0])
    if "/" in text and max(parts[:2]) <= _MONTHS_IN_YEAR and parts[0] != parts[1]:
        # Nobody knows which is the month: it equals itself only.
        return Quantity("date", (year, f"{parts[0]}/{parts[1]}", None), place, place + 1)
    if month > _MONTHS_IN_YEAR:
        month, day = day, month
    return Quantity("date", (year, month, day), place, place + 1)
