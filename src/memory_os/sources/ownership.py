"""Whose source it is: writers change and delete their own, and what is nobody's."""

from __future__ import annotations

from memory_os.domain.principal import Principal
from memory_os.domain.roles import may_correct
from memory_os.errors import PermissionDeniedError
from memory_os.sources.model import Source


def check_own(principal: Principal, source: Source) -> None:
    """Check that somebody may change or delete a source, which may take memories with it; see `may_correct`.

    Raises:
        PermissionDeniedError: If it is another user's, and this one is no reviewer.
    """
    if not may_correct(principal.role, principal.user_id, source.user_id):
        raise PermissionDeniedError("the source is another user's: its user, or a reviewer, changes and deletes it")
