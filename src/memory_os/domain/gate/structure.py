"""Whether the small words leave open that two texts with the same content words say another thing.

Content words that all have a partner prove nothing alone: "decided not to go" and "did not decide to go", "rose by 5"
and "rose to 5", "her key" and "his key" share them. Each function called here looks for one way in which the small
words, the order or the form of a verb may change a statement; where one finds something, nothing is proven.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memory_os.domain.gate.attachments import amounts, owners, slots
from memory_os.domain.gate.clauses import clauses
from memory_os.domain.gate.fillers import small_words
from memory_os.domain.gate.orders import orders, rows
from memory_os.domain.gate.persons import persons
from memory_os.domain.gate.scopes import abilities, duties, scopes
from memory_os.domain.gate.verb_forms import forms

if TYPE_CHECKING:
    from memory_os.domain.gate.comparing import Comparison


def unproven(found: Comparison) -> list[str]:
    """What keeps two readings, whose content words agree, from being proven to say the same; empty if nothing does.

    Stops at the first sort of doubt.
    """
    return next((doubts for look in _LOOKS if (doubts := look(found))), [])


_LOOKS: Final = (
    persons, scopes, duties, abilities, amounts, owners, forms, small_words, clauses, slots, orders, rows,
)  # fmt: skip
"""The cheap ones first."""
