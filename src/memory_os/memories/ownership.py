"""Whose memory it is: writers correct their own, and propose corrections of those of others."""

from __future__ import annotations

from memory_os.domain.principal import Principal
from memory_os.domain.roles import may_correct
from memory_os.errors import PermissionDeniedError
from memory_os.memories.model import Memory


def check_own(principal: Principal, memory: Memory) -> None:
    """Check that somebody may change what a memory claims, or end it; see `may_correct`.

    Raises:
        PermissionDeniedError: If it is another user's, and this one is no reviewer.
    """
    if not may_correct(principal.role, principal.user_id, memory.user_id):
        raise PermissionDeniedError(
            "the memory is another user's: propose a correction (POST /v1/corrections), which a reviewer applies"
        )
