"""The text that full-text search indexes: one function for documents and queries, so that both meet.

Postgres' parser knows words in scripts with spaces only, and keeps a path or an e-mail address as one token. So scripts
without spaces are handed to it as overlapping pairs of letters, and compound tokens are followed by their parts.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final
from unicodedata import normalize

from memory_os.domain.code_points import IGNORED, THAI_MARKS, UNSPACED_LETTERS, Ranges, regex_class

_WORD_BREAKS: Final[Ranges] = ((0x0000, 0x0000), (0x200B, 0x200B), (0xD800, 0xDFFF))
"""Read as spaces: NUL and lone surrogates, which Postgres can't hold, and the zero-width space, which parts words."""

_unspaced = regex_class(UNSPACED_LETTERS)
_marks = regex_class(THAI_MARKS)
_breaks = re.compile(f"[{regex_class(_WORD_BREAKS)}]")
_ignored = re.compile(f"[{regex_class(IGNORED)}]+")
_cluster = re.compile(f"[{_unspaced}][{_marks}]*")
_pieces = re.compile(f"(?:[{_unspaced}][{_marks}]*)+|[^{_unspaced}]+")
_part = re.compile(r"[^./\\_\-@:#?&=+,;'\u2019\"()\[\]{}<>]+")
_segment = re.compile(r"[^/\\@:?&]+")
_hump = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_camel = re.compile("[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_sharp = re.compile(r"[A-Za-z]{1,2}(?:\+\+|#)")


def search_text(text: str) -> str:
    r"""The words to hand to `to_tsvector`, or to make a query of: folded, one space between two.

    Scripts without reliable spaces (Thai, Han, kana, Hangul) become overlapping bigrams, a single letter stays. A token
    with punctuation or camel case inside (a path, an identifier, an e-mail address) is followed by its parts, and C++
    and C# by `cplusplus` and `csharp`, since Postgres' parser drops their signs. Deterministic; never fails; "" for no
    words.
    """
    visible = _ignored.sub("", _breaks.sub(" ", text))
    words: list[str] = []
    for token in normalize("NFKC", visible).split():
        if token.isascii() and token.isalpha() and (token[1:].islower() or len(token) == 1):
            words.append(token.lower())
            continue
        for piece in _pieces.findall(token):
            words += _pair(piece) if _cluster.match(piece) else _take_apart(piece)
    return " ".join(words)


def search_for_name(canonical: str) -> str:
    """A `tsquery` for texts that may hold a name, given in canonical form: all that do, and some that do not.

    The words may stand apart in a text, since compound tokens are followed by their parts there; of a run of letters
    without spaces any two are enough, since a text may have spaces where the name has none. "" for no words.
    """
    wanted = []
    for token in canonical.split():
        for piece in _pieces.findall(token):
            words = [piece]
            if _cluster.match(piece):
                letters = _cluster.findall(piece)
                words = [*letters, *(first + second for first, second in pairwise(letters))]
            quoted = ("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in words)
            wanted.append(f"({' | '.join(quoted)})")
    return " & ".join(wanted)


def _pair(run: str) -> list[str]:
    letters = _cluster.findall(run)
    return letters if len(letters) == 1 else [first + second for first, second in pairwise(letters)]


def _take_apart(token: str) -> list[str]:
    """The token, then its segments and parts where it has several, and of each part in camel case its words."""
    # Folding can undo NFKC; nothing here needs it to be stable, only to be the same on both sides.
    words = [token.casefold()]
    parts = _part.findall(token)
    if len(parts) > 1:
        # A file's name in its path and a host in its address are asked for as they stand.
        known = {token, *parts}
        words += [segment.casefold() for segment in _segment.findall(token) if segment not in known]
        words += [part.casefold() for part in parts]
    for part in parts:
        if _camel.search(part):
            words += [hump.lower() for hump in _hump.findall(part)]
    if _sharp.fullmatch(token):
        words.append(words[0].replace("+", "plus").replace("#", "sharp"))
    return words
