"""A tenant's declared names, as the gate needs them: which spellings mean the same entity."""

from __future__ import annotations

from collections.abc import Iterable

from memory_os.domain.declared_names import DeclaredMatch, DeclaredNames


class Aliases:
    """Immutable: maps every declared name and alias, in any spelling, to its entity's key.

    Build it once per tenant and keep it: building costs about 10 us a name, finding costs a walk over the text.
    """

    __slots__ = ("_names",)

    def __init__(self, names: Iterable[tuple[str, str]] = ()) -> None:
        """Take pairs of an entity's key and one of its names."""
        self._names = DeclaredNames(names)

    def __len__(self) -> int:
        return len(self._names)

    def find(self, text: str) -> list[DeclaredMatch]:
        """The declared names in a text, longest first served, in the order of the text."""
        return self._names.find(text)
