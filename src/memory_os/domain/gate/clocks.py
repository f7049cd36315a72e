"""Times of day: 9:30, half past nine, 9 Uhr 30, at noon."""

# ruff: noqa: RUF001, SIM905 - letters of other scripts are meant; lists of words

from __future__ import annotations

import re
from typing import Final

from memory_os.domain.gate.counting import Count, Counter, Quantity
from memory_os.domain.gate.numerals import CLOCK, HOUR, MINUTE
from memory_os.domain.gate.word_lists import words

_PARTS_OF_HOUR: Final = {
    "demie": 30, "demi": 30, "media": 30, "mezza": 30, "mezzo": 30, "meia": 30, "quart": 15, "cuarto": 15,
}  # fmt: skip
_NAMED: Final = {
    **dict.fromkeys("noon midday mittag midi mediodía полдень 정오 정오까지 mezzogiorno".split(), 12),
    **dict.fromkeys("midnight mitternacht minuit medianoche полночь 자정".split(), 0),
}
_PAST: Final = {"half": 30, "quarter": 15, "twenty": 20, "ten": 10, "five": 5}
_BEFORE_HOUR: Final = {
    **dict.fromkeys("上午 早上 午前 오전 아침 सुबह".split(), -1),
    **dict.fromkeys("下午 晚上 午後 오후 저녁 शाम रात दोपहर".split(), 12),
}
_AFTER_HOUR: Final = {
    **dict.fromkeys("am a.m morgens vormittags утра".split(), -1),
    **dict.fromkeys("pm p.m abends nachmittags вечера".split(), 12),
}
_ENDS_TIME: Final = words(". , ; on in and every each sharp at because when")
_AT: Final = {
    **dict.fromkeys(("fr", "es", "it", "pt"), words("à a las às alle h dès de vers avant")),
    "ru": frozenset({"в", "до", "к", "с"}),
}
"""What stands before an hour where the same words also say how many hours."""

_AT_ALONE: Final = {"it": {"alle"}, "pt": {"às"}, "de": {"um"}, "nl": {"om"}}
"""What makes a number an hour with no word for hours after it."""
_AFTER_TIME: Final = frozenset("e y statt in im am und".split())

_BEFORE_LAS: Final = frozenset({"a", "desde", "hasta", "de", "sobre"})
_DAY: Final = 24
_NOON: Final = 12
_MINUTES: Final = 60


class Clock(Counter):
    """Reads times of day."""

    def _clock(self, place: int) -> Quantity | None:
        token = self._tokens[place]
        if token.low in _NAMED:
            return self._time(place, place + 1, _NAMED[token.low], 0, sure=True)
        if self._low(place) + self._low(place + 1) in {"正午", "中午"}:
            number = self._number(place + 2)
            if number and self._low(number.end) in {"点", "時"}:
                return self._time(place, number.end + 1, int(number.value), 0, sure=True)
            return self._time(place, place + 2, _NOON, 0, sure=True)
        if token.sort == "clock":
            return self._written(place)
        return self._english_time(place) if self._language == "en" else self._other_time(place)

    def _written(self, place: int) -> Quantity | None:
        """9:30, 9h30; with seconds it says how long something took."""
        text = self._tokens[place].text
        hour, minute, *seconds = map(int, re.split("[:h]", text))
        if seconds:
            return self._amount_of_seconds(hour * HOUR + minute * MINUTE + seconds[0], place)
        end, shift = self._daypart(place + 1)
        if hour > _DAY or minute >= _MINUTES:
            return None
        return self._time(place, end, hour, minute, shift=shift, sure=hour > _NOON or text[0] == "0")

    def _english_time(self, place: int) -> Quantity | None:
        low = self._low(place)
        if low in _PAST and self._low(place + 1) in {"past", "to"}:
            past = self._number(place + 2)
            if past and past.written != "ordinal" and 1 <= past.value <= _NOON:
                minutes = int(past.value) * 60 + (_PAST[low] if self._low(place + 1) == "past" else -_PAST[low])
                end, shift = self._daypart(past.end)
                return self._time(place, end, minutes // 60 % 24, minutes % 60, shift=shift, sure=False)
        number = self._number(place)
        if number is None or number.written == "ordinal":
            return None
        dotted = self._sort(place) == "number" and re.fullmatch(r"\d{1,2}\.\d\d", self._tokens[place].text)
        if dotted:
            hour, minute = map(int, self._tokens[place].text.split("."))
        elif number.value.denominator == 1:
            hour, minute = int(number.value), 0
        else:
            return None
        if not 0 <= hour <= _DAY or minute >= _MINUTES:
            return None
        return self._english_hour(place, number, hour, minute)

    def _english_hour(self, place: int, number: Count, hour: int, minute: int) -> Quantity | None:
        """An hour whose neighbours say that it is one."""
        end = number.end
        before = self._low(place - 1)
        clock = next(
            (
                step
                for step, word in ((1, "o'clock"), (1, "oclock"), (2, "clock"), (3, "clock"))
                if self._low(end + step - 1) == word
            ),
            0,
        )
        after, shift = self._daypart(end + clock)
        if clock or after > end:
            return self._time(place, after, hour, minute, shift=shift, sure=False)
        minutes = self._number(end)
        if (
            number.written == "words"
            and before == "at"
            and minutes
            and minutes.value in {5, 10, 15, 20, 30, 40, 45, 50}
        ):
            return self._time(place, minutes.end, hour, int(minutes.value), sure=False)
        alone = end >= len(self._tokens) or self._low(end) in _ENDS_TIME or self._low(end) in self._days
        if (before == "at" and minute == 0 and hour and alone) or (
            minute and before in {"at", "from", "until", "by", "before"}
        ):
            return self._time(place, end, hour, minute, sure=hour > _NOON)
        return None

    def _other_time(self, place: int) -> Quantity | None:
        language, begin = self._language, place
        if language == "de" and self._low(place) == "halb" and 1 <= self._numbers.get(self._low(place + 1), 0) <= _NOON:
            end, shift = self._daypart(place + 2)
            return self._time(place, end, self._numbers[self._low(place + 1)] - 1, 30, shift=shift, sure=False)
        before = self._low(place) + self._low(place + 1) if language in {"zh", "ja"} else self._low(place)
        earlier = _BEFORE_HOUR.get(before, 0)
        if earlier:
            place += 2 if language in {"zh", "ja"} else 1
        if language == "hi" and self._low(place) == "साढे" and (half := self._number(place + 1)):
            end = half.end + (self._low(half.end) == "बजे")
            return self._time(begin, end, int(half.value), 30, shift=earlier, sure=False)
        number = self._number(place)
        if number is None or number.value.denominator != 1 or not 0 <= number.value <= _DAY:
            return None
        read = self._east_asian_minute(number) if language in {"zh", "ja", "ko"} else self._spaced_minute(place, number)
        if read is None:
            return None
        end, shift = self._daypart(read[0])
        return self._time(begin, end, int(number.value), read[1], shift=shift or earlier, sure=number.value > _NOON)

    def _east_asian_minute(self, number: Count) -> tuple[int, int] | None:
        """Where a time ends, and its minute."""
        end, word = number.end, self._low(number.end)
        korean = self._language == "ko" and word[:1] == "시" and not word.startswith("시간")
        if not korean and (word not in {"点", "點", "時"} or self._low(end + 1) in {"間", "间"}):
            return None
        end += 1
        if self._low(end)[:1] in {"半", "반"}:
            return end + 1, 30
        if self._low(end) in {"钟", "鐘"}:
            return end + 1, 0
        minutes = self._number(end)
        if minutes and self._low(minutes.end)[:1] in {"分", "분"}:
            return minutes.end + 1, int(minutes.value)
        return end, 0

    def _spaced_minute(self, place: int, number: Count) -> tuple[int, int] | None:
        end, word, language = number.end, self._low(number.end), self._language
        before = self._low(place - 1)
        if word in CLOCK and (word == "h" or language not in _AT or before in _AT[language]):
            end += 1
            following = self._number(end)
            if self._low(end) in {"et", "e", "y"} and self._low(end + 1) in _PARTS_OF_HOUR:
                return end + 2, _PARTS_OF_HOUR[self._low(end + 1)]
            if (
                word in {"h", "uhr", "heures"}
                and following
                and following.value < _MINUTES
                and following.value.denominator == 1
            ):
                return following.end, int(following.value)
            return end, 0
        alone = self._low(end)
        at = before in _AT_ALONE.get(language, ()) and (not alone.isalpha() or alone in _AFTER_TIME)
        spanish = language == "es" and before in {"las", "la"} and self._low(place - 2) in _BEFORE_LAS
        if not (at or spanish):
            return None
        half = alone in {"e", "y"} and self._low(end + 1) in _PARTS_OF_HOUR
        return (end + 2, _PARTS_OF_HOUR[self._low(end + 1)]) if half else (end, 0)

    def _daypart(self, place: int) -> tuple[int, int]:
        """Am, pm, in the morning: where it ends, and 12 for the afternoon, -1 for the morning, 0 for nothing."""
        low, second, third = (self._low(place + step) for step in range(3))
        if low in _AFTER_HOUR:
            return place + 1, _AFTER_HOUR[low]
        if low in {"a", "p"} and second == "." and third == "m":
            return place + 3 + (self._low(place + 3) == "."), 12 if low == "p" else -1
        if low == "in" and second == "the" and third in {"morning", "afternoon", "evening"}:
            return place + 3, -1 if third == "morning" else 12
        if low == "at" and second == "night":
            return place + 2, 12
        if low == "de" and second == "la" and third in {"mañana", "tarde", "noche"}:
            return place + 3, -1 if third == "mañana" else 12
        return place, 0

    def _time(self, first: int, last: int, hour: int, minute: int, *, shift: int = 0, sure: bool) -> Quantity:
        if shift > 0 and hour < _NOON:
            hour += 12
        elif shift < 0 and hour == _NOON:
            hour = 0
        minutes = hour % 24 * 60 + minute
        doubtful = not (sure or shift) and 1 <= hour < _NOON
        return Quantity("time", (minutes,), first, last, doubtful=doubtful)
