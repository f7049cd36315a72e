"""Where sentences end, in any script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_os.domain.stop_words import ABBREVIATIONS

_ends = re.compile(
    r"(?<![.!?\u2026])[.!?\u2026\u061f\u06d4\u0589\u1362\u203c\u203d\u2047-\u2049]+[\"'\u2019\u201d\u00bb\u203a)\]]*(?=\s|$)"
    r"|[\u3002\uff01\uff1f\uff0e\uff61]+[\u300d\u300f\u300b\u3011\uff09\u2019\u201d\"')]*"
    r"|[\u0964\u0965\u104a\u104b\u17d4\u17d5\u0f0d\u1801\u1803\u1809]+"  # danda, Burmese, Khmer, Tibetan, Mongolian
    r"|(?<=[\u0e00-\u0e7f]) +(?=[\u0e00-\u0e7f])"  # Thai has no full stop: a space parts clauses
    r"|\n+|$"
)
_before_stop = re.compile(r"(?:^|[\s(])((?:[^\W\d_]\.)*[^\W\d_]+)\.$")


def sentence_ends(text: str) -> Iterator[int]:
    """The places (one past the last character) at which a sentence or line of the text ends, ascending, with its end.

    A full stop after an abbreviation or an initial ("Dr.", "J.") ends nothing, nor does one inside a number.
    """
    last = 0
    for match in _ends.finditer(text):
        if match[0] == "." and _is_abbreviation(text[max(0, match.start() - 16) : match.end()]):
            continue
        if match.end() > last:
            last = match.end()
            yield last


def _is_abbreviation(context: str) -> bool:
    found = _before_stop.search(context)
    if found is None:
        return False
    word = found[1]
    return (len(word) == 1 and word != "I") or word.casefold() in ABBREVIATIONS
