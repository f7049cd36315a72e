"""Identifiers: UUIDv7 for what we name, version 5 for what has its name in itself."""

from __future__ import annotations

from uuid import UUID, uuid5

import uuid_utils.compat

_DERIVED = UUID("6d656d6f-7279-5f6f-735f-656e74697479")
"""Namespace of derived entities ("memory_os_entity" in ASCII)."""


def new_id() -> UUID:
    """A new UUIDv7: sorts by time, tells nothing about other tenants."""
    return uuid_utils.compat.uuid7()


_NAME_BASED = 5
"""The version of UUID that derived entities have."""


def may_be_derived(entity_id: UUID) -> bool:
    """Whether an id can be a derived entity's; a client may have chosen one of the same form for a declared one."""
    return entity_id.version == _NAME_BASED


def derived_entity_id(tenant_id: UUID, canonical_name: str) -> UUID:
    """The id of the entity that a name stands for while nobody has declared it; the same in every rebuild."""
    return uuid5(_DERIVED, f"{tenant_id}:{canonical_name}")
