"""Roles, and what each may do: one table that the API, the console and the docs read."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from memory_os.domain.vocabulary import refuse

Permission = Literal["read", "write", "review", "operate", "admin", "instance"]
Role = Literal["reader", "writer", "reviewer", "operator", "admin", "root"]

PERMISSION_MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "read": "Retrieve, read and list records; propose corrections.",
        "write": "Write records and correct one's own.",
        "review": "Apply or reject corrections.",
        "operate": "See the console and the outbox; retry and discard dead events.",
        "admin": "Manage tokens, rebuild the graph, erase.",
        "instance": "Manage tenants.",
    }
)

PERMISSIONS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "reader": frozenset({"read"}),
        "writer": frozenset({"read", "write"}),
        "reviewer": frozenset({"read", "write", "review"}),
        "operator": frozenset({"read", "operate"}),
        "admin": frozenset({"read", "write", "review", "operate", "admin"}),
        "root": frozenset({"instance", "operate"}),
    }
)
"""The permissions of each role. `root` belongs to the instance and reads no tenant's records."""

SCOPES: Final = ("act_as",)
"""What a token may have beyond its role: `act_as` lets an unbound token act for a user named by header."""


def check_role(name: str) -> str:
    """That role's name. Raises `VocabularyError` that lists all."""
    if name in PERMISSIONS:
        return name
    raise refuse("role", name, PERMISSIONS)


def check_scope(name: str) -> str:
    """That scope's name. Raises `VocabularyError` that lists all."""
    if name in SCOPES:
        return name
    raise refuse("scope", name, SCOPES)


def may(role: str, permission: Permission) -> bool:
    """Whether the role has the permission; an unknown role has none."""
    return permission in PERMISSIONS.get(role, frozenset())


def may_correct(role: str, user_id: str | None, owner: str | None) -> bool:
    """Whether somebody may change what a record claims, or end it.

    Its own user may, and a reviewer, and everybody who writes where it is nobody's. Others propose a correction.

    Args:
        role: The role of who asks.
        user_id: The user that they act for, if any.
        owner: The user whose record it is, if it is somebody's.
    """
    return owner is None or owner == user_id or may(role, "review")
