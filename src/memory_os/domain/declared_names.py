"""An index of declared names and aliases, and the search for them in a text, in any script, longest first."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from memory_os.domain.code_points import IGNORED, SEPARATORS, THAI_MARKS, UNSPACED_LETTERS, regex_class
from memory_os.domain.names import canonical_name
from memory_os.domain.stop_words import COMMON_WORDS

_LONGEST_TOKEN: Final = 256
"""Longer runs without a space are no word of a name (which has at most 200 characters); they match nothing."""

_LONGEST_GAP: Final = 8
"""Characters of white space and punctuation that may lie between two words of a name."""

_PLAIN_GAPS: Final = frozenset({"", " ", "-", " & ", "_", "."})

_PROCLITICS: Final = frozenset("\u0648\u0641\u0628\u0644\u0643\u05d5\u05d4\u05d1\u05db\u05dc\u05de\u05e9")
"""Arabic and Hebrew words of one letter (and, in, to, from, the ...) that are written onto the word after them."""

_SHORTEST_STEM: Final = 3
"""Letters that must be left of a word without its proclitic; shorter ones are words of their own too often."""

_KANA_WORD: Final = 2
"""Katakana names of up to this many letters must stand alone: longer foreign words are full of them."""

_ASCII: Final = 0x7F

_separators = regex_class(SEPARATORS)
_ignored = regex_class(IGNORED)
_letters = regex_class(UNSPACED_LETTERS)
_marks = regex_class(THAI_MARKS)
_raw_letter = (
    rf"[\u1100-\u115f\ua960-\ua97f]+[\u1160-\u11a7\ud7b0-\ud7c6]*[\u11a8-\u11ff\ud7cb-\ud7fb]*"  # Hangul, decomposed
    rf"|[{_letters}\u2e80-\u2fdf\u3131-\u318e\u3200-\u33ff\uff66-\uff9d\uffa1-\uffdc]"
    rf"[{_marks}\u3099\u309a\uff9e\uff9f{_ignored}]*"
)
_ascii_token = re.compile(f"[^{regex_class(tuple(pair for pair in SEPARATORS if pair[1] <= _ASCII))}]+")
_ascii_control = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_token = re.compile(rf"{_raw_letter}|[^{_separators}{_letters}\u1100-\u115f\ua960-\ua97f]+")
_atom = re.compile(f"[{_letters}][{_marks}]*|[^ {_letters}]+")
_unspaced = re.compile(f"[{_letters}]")
_hangul = re.compile("[\uac00-\ud7a3]")
_katakana = re.compile("[\u30a1-\u30fa\u30fc-\u30fe\u31f0-\u31ff\uff66-\uff9d]")
_numeric_joint = re.compile(r"\d[.,:/\-\u2013_']\d")
_sentence_gap = re.compile("[\u3002\uff01\uff1f\uff1b;\u2026]|\n\\s*\n|[!?]\\s")


class DeclaredMatch(NamedTuple):
    """Where a declared name stands in a text (a half-open span of characters), and the entity's canonical key."""

    start: int
    end: int
    key: str


class _Node:
    """A step of the index: what may follow, and the names that end here."""

    __slots__ = ("children", "names")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.names: _Names | None = None


class _Names(NamedTuple):
    """The declared names that share one sequence of words."""

    key: str
    capital: bool
    """Written with a capital and otherwise a common word (Will, May): all small letters are the word."""
    alone: str
    """The neighbours that it may not have: "letter" for one-letter names, "katakana" for short ones, "" for others."""


class DeclaredNames:
    """Immutable index of names and aliases, built from pairs of an entity's canonical key and one of its surfaces.

    A surface is matched wherever its canonical form stands in a text: whole words in scripts with spaces; any place in
    scripts without, where Hangul and Katakana names may not begin inside a word and one-letter names stand alone. A
    number is never cut out of a longer one. A surface that two entities share and that is the canonical name of neither
    matches under its own canonical form: nobody guesses which of the two is meant.
    """

    __slots__ = ("_literals", "_root", "_size")

    def __init__(self, names: Iterable[tuple[str, str]] = ()) -> None:
        keys: defaultdict[tuple[str, ...], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        literals: dict[str, set[str]] = defaultdict(set)
        for key, surface in names:
            if atoms := tuple(_read(surface)[0]):
                keys[atoms][surface].add(key)
            elif surface.strip():
                literals[surface.strip()].add(key)
        self._size = len(keys) + len(literals)
        self._root = _Node()
        for atoms, surfaces in keys.items():
            self._insert(atoms, surfaces)
        self._literals = _Literals(literals) if literals else None

    def __len__(self) -> int:
        return self._size

    def find(self, text: str) -> list[DeclaredMatch]:
        """All declared names in the text that do not overlap, longer ones first served, in the order of the text."""
        if not self._size:
            return []
        found = self._scan(text) if self._root.children else []
        if self._literals:
            found += self._literals.find(text)
        return _prefer_longest(found)

    def _insert(self, atoms: tuple[str, ...], surfaces: dict[str, set[str]]) -> None:
        node = self._root
        for atom in atoms:
            node = node.children.setdefault(atom, _Node())
        keys = set().union(*surfaces.values())
        own = canonical_name(min(surfaces))
        key = next(iter(keys)) if len(keys) == 1 else own
        common = len(atoms) == 1 and atoms[0] in COMMON_WORDS
        capital = common and all(not surface.islower() for surface in surfaces)
        node.names = _Names(key, capital, _needs_room(atoms))

    def _scan(self, text: str) -> list[DeclaredMatch]:
        first = self._root.children
        if text.isascii() and first.keys().isdisjoint(_ascii_token.findall(text.lower())):
            # Most texts name nobody: this costs a tenth of the walk below.
            return []
        atoms, starts, ends = _read(text)
        found = []
        for index, atom in enumerate(atoms):
            node, begin = first.get(atom), starts[index]
            if node is None and atom[:1] in _PROCLITICS and len(atom) > _SHORTEST_STEM:
                node, begin = first.get(atom[1:]), begin + 1
            if node is None or (index and starts[index] == starts[index - 1]):
                continue
            if match := _follow(node, begin, index, text, atoms, starts, ends):
                found.append(match)
        return found


class _Literals:
    """Names that are nothing but punctuation: found as they are written, between white space."""

    def __init__(self, literals: dict[str, set[str]]) -> None:
        self._keys = {
            surface: next(iter(keys)) if len(keys) == 1 else canonical_name(surface)
            for surface, keys in literals.items()
        }
        longest_first = sorted(literals, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, longest_first))})(?!\S)")

    def find(self, text: str) -> list[DeclaredMatch]:
        return [DeclaredMatch(*match.span(), self._keys[match[0]]) for match in self._pattern.finditer(text)]


def _read(text: str) -> tuple[list[str], list[int], list[int]]:
    """The words and unspaced letters of a text in canonical form, each with the span of what it was written as."""
    if text.isascii() and not _ascii_control.search(text):
        matches = list(_ascii_token.finditer(text.lower()))
        return [match[0] for match in matches], [match.start() for match in matches], [match.end() for match in matches]
    atoms: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for match in _token.finditer(text):
        start, end = match.span()
        for atom in _fold(match[0]) if end - start <= _LONGEST_TOKEN else ("",):
            atoms.append(atom)
            starts.append(start)
            ends.append(end)
    return atoms, starts, ends


@lru_cache(maxsize=16_384)
def _fold(token: str) -> tuple[str, ...]:
    # Texts repeat their words: the cache turns 7 us of normalisation into 0.1 us.
    return tuple(_atom.findall(canonical_name(token)))


def _needs_room(atoms: tuple[str, ...]) -> str:
    if not all(_unspaced.match(atom) for atom in atoms):
        return ""
    if len(atoms) == 1:
        return "letter"
    return "katakana" if len(atoms) <= _KANA_WORD and all(map(_katakana.match, atoms)) else ""


def _follow(
    node: _Node, begin: int, index: int, text: str, atoms: list[str], starts: list[int], ends: list[int]
) -> DeclaredMatch | None:
    """The longest name that begins at the atom `index` and stands there in its own right."""
    last, candidates = len(atoms), []
    while True:
        if node.names:
            candidates.append((index, node.names))
        index += 1
        if index == last or not node.children:
            break
        following = node.children.get(atoms[index])
        if following is None or not _bridged(text, ends[index - 1], starts[index], atoms[index - 1]):
            break
        node = following
    for end, names in reversed(candidates):
        whole = end + 1 == last or starts[end + 1] != starts[end]
        if whole and _stands(text, begin, ends[end], names):
            return DeclaredMatch(begin, ends[end], names.key)
    return None


def _bridged(text: str, end: int, start: int, before: str) -> bool:
    """Whether two words with this gap between them can belong to one name: no sentence ends there."""
    gap = text[end:start]
    if gap in _PLAIN_GAPS:
        return True
    if len(gap) > _LONGEST_GAP or _sentence_gap.search(gap):
        return False
    # A full stop and a space end a sentence, except after an initial or a short abbreviation (J. Smith, St. Louis).
    return "." not in gap or len(before) <= _KANA_WORD or not gap[gap.index(".") + 1 :].startswith((" ", "\n"))


def _stands(text: str, start: int, end: int, names: _Names) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    if _numeric_joint.match(text[end - 1 : end + 2]) or (
        start > 1 and _numeric_joint.match(text[start - 2 : start + 1])
    ):
        return False
    if names.capital and text[start:end].islower():
        return False
    for script in (_hangul, _katakana):
        if script.match(before) and script.match(text[start]):
            return False
    if names.alone == "katakana":
        return not _katakana.match(after)
    return not (names.alone and (_unspaced.match(before) or _unspaced.match(after)))


def _prefer_longest(found: list[DeclaredMatch]) -> list[DeclaredMatch]:
    found.sort()
    if all(left.end <= right.start for left, right in pairwise(found)):
        return found
    kept: list[DeclaredMatch] = []
    for match in sorted(found, key=lambda match: (match.start - match.end, match.start)):
        place = bisect_left(kept, match)
        clear_before = place == 0 or kept[place - 1].end <= match.start
        clear_after = place == len(kept) or match.end <= kept[place].start
        if clear_before and clear_after:
            kept.insert(place, match)
    return kept
