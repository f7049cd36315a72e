"""Who is asking: the identity behind a request."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

INSTANCE_TENANT = UUID(int=0)
"""The reserved tenant that holds the instance's own tokens; no memory ever belongs to it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The identity behind a request: a tenant, a role, and optionally a user with groups.

    `user_id` is the user that a token is bound to, or that an unbound token with the `act_as` scope acts for.
    """

    tenant_id: UUID
    role: str
    token_id: UUID | None = None
    user_id: str | None = None
    groups: tuple[str, ...] = ()
    scopes: frozenset[str] = frozenset()
