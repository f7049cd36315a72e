"""The digits of a name, which tell apart what is otherwise called alike: rooms, flights, parts, years."""

from __future__ import annotations

from unicodedata import digit

from memory_os.domain.names import canonical_name


def digits_of(name: str) -> tuple[str, ...]:
    """The runs of digits in the canonical form of a name, in their order, whatever script they are written in."""
    signs = (str(value) if (value := digit(sign, -1)) >= 0 else " " for sign in canonical_name(name))
    return tuple("".join(signs).split())
