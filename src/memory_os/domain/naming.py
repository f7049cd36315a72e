"""Which entities a question names: its word groups are looked up by canonical name, then matched with care.

And whether a record begins with a name, which is what it is about.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from memory_os.domain.code_points import THAI_MARKS, UNSPACED_LETTERS, regex_class
from memory_os.domain.declared_names import DeclaredNames
from memory_os.domain.names import canonical_name
from memory_os.domain.stop_words import ARTICLES, HONORIFICS

GROUP_WORDS: Final = 6
"""Words of the longest name that is looked for."""

GROUP_LETTERS: Final = 8
"""Letters of the longest name that is looked for in a script without spaces."""

MAX_GROUPS: Final = 6_000
"""Names looked up for one question: all of 4,000 characters of English; they travel as one array."""

_BEGINNING: Final = 512
"""Characters of a record that are looked at for the name it begins with: the longest one, and marks around it."""

_letters = regex_class(UNSPACED_LETTERS)
_atom = re.compile(f" ?(?:[{_letters}][{regex_class(THAI_MARKS)}]*|[^ {_letters}]+)")
_unspaced = re.compile(f" ?[{_letters}]")


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity that bears a name which a question may hold."""

    id: UUID
    canonical_name: str
    surface: str


def name_groups(query: str) -> list[str]:
    """The canonical form of each group of words in the question that could be a name, the first words' groups first."""
    atoms: list[str] = _atom.findall(canonical_name(query))
    groups: dict[str, None] = {}
    for start, first in enumerate(atoms):
        longest = GROUP_LETTERS if _unspaced.match(first) else GROUP_WORDS
        for end in range(start + 1, min(start + longest, len(atoms)) + 1):
            groups["".join(atoms[start:end]).strip(" ")] = None
            if len(groups) >= MAX_GROUPS:
                return list(groups)
    return list(groups)


def named_in(query: str, candidates: Iterable[NamedEntity]) -> list[UUID]:
    """The entities among the candidates that the question names, in its order; a longer name hides those within it.

    The rules are those of extraction: whole words, no number cut out of a longer one, and a name that is also a common
    word (May, Will) only where it is written with a capital. Two entities that share a name are both meant.
    """
    bearers: defaultdict[str, list[UUID]] = defaultdict(list)
    surfaces = []
    for entity in candidates:
        bearers[entity.canonical_name].append(entity.id)
        surfaces.append((entity.canonical_name, entity.surface))
    found = DeclaredNames(surfaces).find(query)
    return list(dict.fromkeys(ident for match in found for ident in sorted(bearers[match.key], key=str)))


def is_subject(name: str, title: str | None, text: str) -> bool:
    """Whether a record begins with a name, so that it is about who bears it: its title, if it has one, else its text.

    Marks, articles and honorifics before the name are left aside, and names are compared in canonical form. Only whole
    words count; whether more of a name follows ("Ann" before "Lee") is not looked at, since a mention tells that.

    Args:
        name: The name of a mention, as it is written or in canonical form.
        title: The record's title.
        text: The record's text.
    """
    wanted = canonical_name(name)
    left = canonical_name(((title or "").strip() or text.lstrip())[:_BEGINNING])
    while wanted and left:
        rest = left.removeprefix(wanted)
        if rest != left and (not rest or rest[0] == " " or _unspaced.match(rest)):
            return True
        before, _, left = left.partition(" ")
        if before not in ARTICLES and before not in HONORIFICS:
            return False
    return False
