"""What an edge must satisfy before it is stored."""

from __future__ import annotations

from memory_os.checking import unknown_term
from memory_os.domain.edge_types import check_edge_type
from memory_os.domain.vocabulary import VocabularyError
from memory_os.edges.model import EdgeDraft
from memory_os.errors import FieldError, InvalidInputError
from memory_os.memories.model import NodeAddress


def check_draft(draft: EdgeDraft) -> None:
    """Check an edge.

    Raises:
        UnknownTermError: If its type is none of the eighteen.
        InvalidInputError: With a pointer for each fault of its ends.
    """
    check_type(draft.type)
    ends = {"/from": draft.source, "/to": draft.to}
    faults = [
        FieldError(pointer, "needs exactly one of memory and entity")
        for pointer, address in ends.items()
        if not _is_one(address)
    ]
    if not faults and draft.source == draft.to:
        faults.append(FieldError("/to", "an edge can't lead back to where it begins"))
    elif not faults and draft.source.memory is None and draft.to.memory is None:
        faults.append(FieldError("/to", "an edge has a memory at one end at least; entities are joined by links"))
    if faults:
        raise InvalidInputError("the edge can't be stored as it is", errors=faults)


def check_type(name: str | None) -> None:
    """Check the type of an edge where one is given.

    Raises:
        UnknownTermError: If it is none of the eighteen.
    """
    try:
        if name is not None:
            check_edge_type(name)
    except VocabularyError as error:
        raise unknown_term(error, "/type") from None


def _is_one(address: NodeAddress) -> bool:
    return (address.memory is None) != (address.entity is None)
