"""From a patch to the columns that it changes: only those whose values differ from what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct


def changed_columns(patch: Struct, current: Struct) -> dict[str, Any]:
    """The columns that a patch changes, with their new values; `readers` becomes its two columns.

    A record that stops being `restricted` loses its readers.

    Args:
        patch: Fields with the names of the record's; those that are UNSET stay as they are.
        current: The record as it is stored now, with `readers`.
    """
    given = {name: value for name in patch.__struct_fields__ if (value := getattr(patch, name)) is not UNSET}
    readers = given.pop("readers", None)
    values = {name: value for name, value in given.items() if getattr(current, name) != value}
    if readers is not None and readers != getattr(current, "readers", None):
        values |= {"reader_users": readers.users, "reader_groups": readers.groups}
    elif values.get("visibility", "restricted") != "restricted":
        values |= {"reader_users": [], "reader_groups": []}
    return values


def values_before(current: Struct, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the changed columns held before, for the audit log; readers under their name on the record."""
    before = {name: getattr(current, name) for name in values if hasattr(current, name)}
    if "reader_users" in values:
        before["readers"] = getattr(current, "readers", None)
    return before
