"""Letting others read a memory who may not read all that it was taken from: on purpose only, and audited."""

from __future__ import annotations

from uuid import UUID

from memory_os.domain.audiences import Audience
from memory_os.domain.inheritance import is_wider
from memory_os.domain.principal import Principal
from memory_os.errors import FieldError, InvalidInputError, PermissionDeniedError
from memory_os.memories.model import Memory
from memory_os.sources.evidence import readers_of_sources
from memory_os.storage.database import Transaction


async def check_widening(
    tx: Transaction, principal: Principal, memory: Memory, after: Audience, *, widen: bool
) -> list[UUID]:
    """Hold the new readers of a locked memory against its living evidence, also such as the caller may not see.

    Who could read the memory before may go on to do so, and its own user may in any case.

    Returns:
        The sources that some of the new readers may not read.

    Raises:
        InvalidInputError: If there are any, and `widen` is not said.
        PermissionDeniedError: If it is said by somebody who may not read one of these sources either.
    """
    if Audience.of(memory).covers(after):
        return []
    sources = await readers_of_sources(tx, memory.id)
    narrower = sorted(ident for ident, readers in sources.items() if is_wider(after, readers, memory.user_id))
    if narrower and not widen:
        fault = FieldError(
            "/visibility", "some could read it who may not read all that it was taken from: say widen: true"
        )
        raise InvalidInputError("the memory can't have these readers", errors=[fault])
    if not all(sources[ident].admits(principal.user_id, principal.groups) for ident in narrower):
        raise PermissionDeniedError("only who may read all that a memory was taken from may give it more readers")
    return narrower
